#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a user would pick instead: torch, torch.compile and the libraries behind them, on the shipped problems.

Reads the public workloads and the cost of specs/*/spec.json. Each rival is captured into one CUDA graph: a read of three
times the L2 (nothing of the inputs is left, no line is dirty), start event, operation, stop event. The rivals of a workload
take turns, rep by rep, so that clock and power are the same for all. Outputs are compared with the first rival's.
Prints one JSON object a line.

  python3 tests/gpu/compare.py [--reps 200] [--specs rmsnorm,softmax] [--no-compile] [--quick] [--list]

--quick: 30 reps and no torch.compile, which takes longer than all measurements (all specs within a minute).
--list needs neither torch nor a GPU: it prints what would be measured. A rival that fails is a line with "error".
"""
import argparse
import json
import os
import statistics
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def number(text, axes):
    """A cost expression: integers, + - * / and parentheses, which python reads alike but for the division."""
    return int(eval(text.replace("/", "//"), {"__builtins__": {}}, dict(axes)))


def workloads(wanted):
    for name in sorted(os.listdir(os.path.join(ROOT, "specs"))):
        path = os.path.join(ROOT, "specs", name, "spec.json")
        if not os.path.exists(path) or (wanted and name not in wanted):
            continue
        with open(path, encoding="ascii") as f:
            spec = json.load(f)
        const = {k: a["value"] for k, a in spec["axes"].items() if a["type"] == "const"}
        for w in spec["workloads"]["public"]:
            axes = {**const, **w["axes"]}
            cost = spec.get("cost", {})
            yield name, w["name"], axes, number(cost.get("bytes", "0"), axes), number(cost.get("flops", "0"), axes)


# ---- the problems: each gives {rival: function}, functions return their output ----

def vector_add(t, a):
    x, y = t.randn(a["N"]), t.randn(a["N"])
    out = t.like(x)
    return {"eager": lambda: t.torch.add(x, y, out=out)}


def rmsnorm(t, a):
    x, w = t.randn(a["R"], a["H"], bf16=True), t.randn(a["H"], bf16=True)
    op = lambda x, w: t.F.rms_norm(x, (a["H"],), w, 1e-5)
    fast = t.compile(op)
    return {"eager": lambda: op(x, w), "compile": fast and (lambda: fast(x, w))}


def softmax(t, a):
    x = t.randn(a["R"], a["C"])
    op = lambda x: t.F.softmax(x, dim=-1)
    fast = t.compile(op)
    return {"eager": lambda: op(x), "compile": fast and (lambda: fast(x))}


def silu_mul(t, a):
    x, y = t.randn(a["N"], bf16=True), t.randn(a["N"], bf16=True)
    op = lambda x, y: t.F.silu(x) * y
    fast = t.compile(op)
    return {"eager": lambda: op(x, y), "compile": fast and (lambda: fast(x, y))}


def transpose(t, a):
    x = t.randn(a["R"], a["C"])
    op = lambda x: x.t().contiguous()
    fast = t.compile(op)
    return {"eager": lambda: op(x), "compile": fast and (lambda: fast(x))}


def gemm(t, a, bf16):
    x, y = t.randn(a["M"], a["K"], bf16=bf16), t.randn(a["K"], a["N"], bf16=bf16)
    out = t.torch.empty(a["M"], a["N"], device="cuda", dtype=x.dtype)
    return {"cublas": lambda: t.torch.mm(x, y, out=out)}


def matmul(t, a):
    t.torch.backends.cuda.matmul.allow_tf32 = False
    return gemm(t, a, False)


def matmul_bf16(t, a):
    return gemm(t, a, True)


def attention(t, a):
    q = t.randn(a["B"], a["H"], a["S"], a["D"], bf16=True)
    k, v = (t.randn(a["B"], a["HKV"], a["S"], a["D"], bf16=True) for _ in range(2))
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def with_backend(backend):
        def run():
            with sdpa_kernel(backend):
                return t.F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.1, enable_gqa=True)
        return run
    return {"sdpa_flash": with_backend(SDPBackend.FLASH_ATTENTION), "sdpa_cudnn": with_backend(SDPBackend.CUDNN_ATTENTION)}


def paged_decode(t, a):
    torch, length = t.torch, a["MAXP"] * a["PAGE"]
    q = t.randn(a["B"], a["H"], 1, a["D"], bf16=True)
    k, v = (t.randn(a["PAGES"], a["PAGE"], a["HKV"], a["D"], bf16=True) for _ in range(2))
    table = torch.randperm(a["PAGES"], device="cuda")[: a["B"] * a["MAXP"]].view(a["B"], a["MAXP"])
    lens = torch.randint(1, length + 1, (a["B"],), device="cuda")
    mask = (torch.arange(length, device="cuda")[None] < lens[:, None])[:, None, None]
    rows = lambda cache: cache[table].view(a["B"], length, a["HKV"], a["D"]).transpose(1, 2)
    op = lambda: t.F.scaled_dot_product_attention(q, rows(k), rows(v), attn_mask=mask, scale=0.1, enable_gqa=True)
    rivals = {"gather_sdpa": op}
    try:
        rivals["flashinfer"] = flashinfer_decode(torch, a, q, k, v, table, lens)
    except Exception as e:  # not there, or nothing here to build its kernels with
        t.note("flashinfer", e)
    return rivals


def flashinfer_decode(torch, a, q, k, v, table, lens):
    import flashinfer
    used = (lens + a["PAGE"] - 1) // a["PAGE"]
    indptr = torch.cat([torch.zeros(1, device="cuda", dtype=torch.int64), used.cumsum(0)]).int()
    flat = torch.cat([table[i, : int(used[i])] for i in range(a["B"])]).int()
    wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(torch.empty(128 << 20, dtype=torch.uint8, device="cuda"), "NHD")
    wrapper.plan(indptr, flat, ((lens - 1) % a["PAGE"] + 1).int(), a["H"], a["HKV"], a["D"], a["PAGE"],
                 q_data_type=torch.bfloat16, sm_scale=0.1)
    return lambda: wrapper.run(q[:, :, 0], (k, v))


def topk(t, a):
    x = t.randn(a["R"], a["V"])
    return {"eager": lambda: t.torch.topk(x, a["K"], dim=-1)[0]}


PROBLEMS = {f.__name__: f for f in (vector_add, rmsnorm, softmax, silu_mul, transpose, matmul, matmul_bf16, attention,
                                    paged_decode, topk)}


# ---- measuring ----

class Tools:
    def __init__(self, compiled):
        import torch
        self.torch, self.F, self.compiled = torch, torch.nn.functional, compiled
        l2 = torch.cuda.get_device_properties(0).L2_cache_size
        self.noise = torch.ones(3 * l2 // 4, dtype=torch.int32, device="cuda")
        self.sink = torch.empty((), dtype=torch.int64, device="cuda")
        self.base = {}

    def line(self, **fields):
        print(json.dumps({**self.base, **fields}), flush=True)

    def note(self, rival, e):
        self.line(rival=rival, error=f"{type(e).__name__}: {e}"[:200])

    def randn(self, *shape, bf16=False):
        x = self.torch.randn(*shape, device="cuda")
        return x.bfloat16() if bf16 else x

    def like(self, x):
        return self.torch.empty_like(x)

    def compile(self, op):
        self.torch._dynamo.reset()
        return self.torch.compile(op, mode="max-autotune-no-cudagraphs", dynamic=False) if self.compiled else None

    def flush(self):
        self.torch.sum(self.noise, dim=0, out=self.sink)


class Rival:
    """One graph: flush, start event, operation, stop event. Where torch has no events inside graphs, they lie around the
    graph of the operation alone, and `inside` says so: a few us of launch then count as well."""

    def __init__(self, tools, op):
        torch = tools.torch
        self.tools, self.op, self.inside = tools, op, True
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                op()
                tools.flush()
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        try:
            self.start, self.stop = (torch.cuda.Event(enable_timing=True, external=True) for _ in range(2))
        except TypeError:
            self.start, self.stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            self.inside = False
        with torch.cuda.graph(self.graph):
            if self.inside:
                tools.flush()
                self.start.record()
            self.out = op()
            if self.inside:
                self.stop.record()

    def time(self):
        if not self.inside:
            self.tools.flush()
            self.start.record()
        self.graph.replay()
        if not self.inside:
            self.stop.record()
        self.tools.torch.cuda.synchronize()
        return self.start.elapsed_time(self.stop) * 1e3


def agree(torch, a, b):
    a, b = a.float().flatten(), b.float().flatten()
    return float((a - b).norm() / b.norm().clamp_min(1e-30)) if a.shape == b.shape else None


def measure(tools, name, workload, axes, size, flops, reps):
    torch = tools.torch
    tools.base = {"spec": name, "workload": workload, "axes": axes, "gpu": torch.cuda.get_device_name(0),
                  "torch": torch.__version__}
    made, us = {}, {}
    try:
        rivals = PROBLEMS[name](tools, axes)
    except Exception as e:
        tools.note("all", e)
        return
    for rival, op in rivals.items():
        if op is None:
            continue
        try:
            made[rival] = Rival(tools, op)
            us[rival] = []
        except Exception as e:  # one rival's trouble is a line, not the end
            tools.note(rival, e)
    for rep in range(reps + 10):
        for rival, r in list(made.items()):
            try:
                t = r.time()
            except Exception as e:  # as of an event that was not recorded
                tools.note(rival, e)
                del made[rival]
                continue
            if rep >= 10:
                us[rival].append(t)
    first = next(iter(made.values()), None)
    for rival, r in made.items():
        v = sorted(us[rival])
        mid = statistics.median(v)
        tools.line(rival=rival, cold_us=round(mid, 3), p5_us=round(v[len(v) // 20], 3),
                   p95_us=round(v[len(v) * 19 // 20], 3), reps=len(v), events_in_graph=r.inside,
                   tb_s=round(size / mid / 1e6, 3), tflops=round(flops / mid / 1e6, 1),
                   differs_from_first=agree(torch, r.out, first.out))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--reps", type=int, default=200)
    p.add_argument("--specs", default="")
    p.add_argument("--no-compile", action="store_true")
    p.add_argument("--quick", action="store_true")
    p.add_argument("--list", action="store_true")
    o = p.parse_args()
    if o.quick:
        o.reps, o.no_compile = min(o.reps, 30), True
    todo = [w for w in workloads([s for s in o.specs.split(",") if s])]
    if o.list:
        for name, workload, axes, size, flops in todo:
            print(json.dumps({"spec": name, "workload": workload, "axes": axes, "bytes": size, "flops": flops,
                              "known": name in PROBLEMS}))
        return 0
    try:
        tools = Tools(not o.no_compile)
    except ImportError:
        print("compare: torch is not installed", file=sys.stderr)
        return 4
    except (RuntimeError, AssertionError) as e:  # a build of torch, or a machine, without a GPU
        print(f"compare: {e}", file=sys.stderr)
        return 4
    with tools.torch.no_grad():
        for w in todo:
            if w[0] in PROBLEMS:
                measure(tools, *w, o.reps)
                tools.torch.cuda.empty_cache()
    return 0


if __name__ == "__main__":
    sys.exit(main())
