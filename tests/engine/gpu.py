#!/usr/bin/env python3
"""gpu.py - the reference on a GPU beside transformers' Qwen3 there, on the same checkpoint and tokens.

  gpu.py MODEL_DIR TOKENS LOGITS_PROGRAM [--processor]

transformers in bfloat16 (eager, SDPA) and in float32; the reference (tests/engine/logits.c) on the GPU under both
policies, with --processor its float32 on the processor too. For pairs: the largest and mean difference of logits, how
often the argmax is the same, mean and worst regret (the best logit of the first minus its logit of the other's argmax),
over all positions of one sequence. Then what must hold: the reference is transformers' float32 to rounding (argmax
differs less than a tenth as often as bfloat16's), and beside its bfloat16 it stands no further than 1.5 times as far as
eager and SDPA stand from each other, in mean regret and in how often the argmax differs. Exit 1 when one does not.

SPDX-License-Identifier: MIT
"""
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch
import transformers
from transformers import AutoModelForCausalLM

from golden import tokens


def ours(program, folder, ids, policy, vocab, where, *more):
    ids.tofile(where + "/ids")
    start = time.time()
    subprocess.run([program, folder, where + "/ids", where + "/out", policy, *more], check=True)
    seconds = time.time() - start
    x = np.fromfile(where + "/out", np.float32).reshape(len(ids), vocab)
    os.unlink(where + "/out")
    print(f"  ours {policy} {' '.join(more) or 'processor'}: {seconds:.1f} s", flush=True)
    return torch.from_numpy(x).cuda()


def theirs(folder, ids):
    start = time.time()
    m = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16, attn_implementation="eager").cuda().eval()
    at = torch.from_numpy(ids.astype(np.int64))[None].cuda()
    out = {}
    with torch.no_grad():
        out["eager"] = m(at).logits[0].float()
        m.set_attn_implementation("sdpa")
        out["sdpa"] = m(at).logits[0].float()
        m = m.float()
        m.set_attn_implementation("eager")
        out["fp32"] = m(at).logits[0].float()
    print(f"  transformers, three ways: {time.time() - start:.1f} s", flush=True)
    return out


def compare(a, b):
    most = total = worst = regrets = 0.0
    same = 0
    for i in range(0, len(a), 256):
        x, y = a[i : i + 256], b[i : i + 256]
        d = (x - y).abs()
        most, total = max(most, d.max().item()), total + d.double().sum().item()
        best, other = x.argmax(1), y.argmax(1)
        same += (best == other).sum().item()
        regret = (x.gather(1, best[:, None]) - x.gather(1, other[:, None])).double()
        regrets, worst = regrets + regret.sum().item(), max(worst, regret.max().item())
    n = len(a)
    return {"max": most, "mean": total / a.numel(), "differs": 1 - same / n, "regret": regrets / n, "worst": worst}


def main():
    folder, n, program = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    torch.backends.cuda.matmul.allow_tf32 = False
    vocab = json.load(open(folder + "/config.json"))["vocab_size"]
    ids = tokens(n, vocab)
    print(f"{os.path.basename(folder)}, {n} tokens, torch {torch.__version__}, transformers {transformers.__version__}, "
          f"{torch.cuda.get_device_name()}", flush=True)
    with tempfile.TemporaryDirectory() as d:
        x = {"ours": ours(program, folder, ids, "fp32", vocab, d, "gpu"),
             "ours bf16": ours(program, folder, ids, "bf16", vocab, d, "gpu")}
        if "--processor" in sys.argv:
            x["processor"] = ours(program, folder, ids, "fp32", vocab, d)
    x.update(theirs(folder, ids))
    r = {}
    pairs = [("fp32", "ours"), ("processor", "ours"), ("fp32", "eager"), ("fp32", "sdpa"), ("eager", "sdpa"), ("ours", "eager"),
             ("ours", "sdpa"), ("eager", "ours bf16")]
    for a, b in pairs:
        if a not in x or b not in x:
            continue
        q = r[a, b] = compare(x[a], x[b])
        print(f"  {a + ' / ' + b:20s} max {q['max']:8.4f} mean {q['mean']:10.7f} argmax differs {q['differs'] * 100:6.2f} % "
              f"regret mean {q['regret']:9.6f} worst {q['worst']:7.4f}", flush=True)
    theirs_apart = r["eager", "sdpa"]
    bad = [f"{a} / {b}: {k} {r[a, b][k]:.6f} over 1.5 times eager / sdpa's {theirs_apart[k]:.6f}"
           for a, b in (("ours", "eager"), ("ours", "sdpa")) for k in ("regret", "differs")
           if not r[a, b][k] <= 1.5 * theirs_apart[k] + 1 / n]
    if not r["fp32", "ours"]["differs"] <= 0.1 * r["fp32", "eager"]["differs"] + 1 / n:
        bad.append(f"fp32 / ours: argmax differs in {r['fp32', 'ours']['differs'] * 100:.2f} %")
    print("  " + ("ok" if not bad else "NOT OK: " + "; ".join(bad)), flush=True)
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
