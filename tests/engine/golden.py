#!/usr/bin/env python3
"""golden.py - the reference beside transformers' Qwen3 on the same checkpoint and tokens.

  golden.py MODEL_DIR TOKENS LOGITS_PROGRAM [--keep FILE POSITIONS]

Runs transformers in float32 (eager) and in bfloat16 (eager and SDPA), and the reference (tests/engine/logits.c) under
both policies; prints for pairs of them the largest and mean difference of logits, how often the argmax is the same,
and the mean and worst regret (the best logit of the first minus its logit of the other's argmax). --keep writes
transformers' float32 logits of the first POSITIONS tokens, the test data of t01-golden.sh.

SPDX-License-Identifier: MIT
"""
import subprocess
import sys
import tempfile

import numpy as np
import torch
from transformers import AutoModelForCausalLM


def tokens(n, vocab):
    """A fixed sequence that the shell test makes too: the high bits of i times an odd constant."""
    i = np.arange(n, dtype=np.uint64)
    return (((i * 2654435761) % 2**32 >> 8) % vocab).astype(np.int32)


def theirs(folder, ids, dtype, attention):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    m = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation=attention).to(device).eval()
    with torch.no_grad():
        x = m(torch.from_numpy(ids.astype(np.int64))[None].to(device)).logits[0].float().cpu().numpy()
    return x, m.config.vocab_size


def ours(program, folder, ids, policy, vocab):
    with tempfile.TemporaryDirectory() as d:
        ids.tofile(d + "/ids")
        subprocess.run([program, folder, d + "/ids", d + "/out", policy], check=True)
        return np.fromfile(d + "/out", np.float32).reshape(len(ids), vocab)


def compare(name, a, b):
    d = np.abs(a - b)
    best, other = a.argmax(1), b.argmax(1)
    rows = np.arange(len(a))
    regret = a[rows, best] - a[rows, other]
    print(f"{name:34s} max {d.max():8.4f} mean {d.mean():9.6f} argmax same {(best == other).mean() * 100:6.2f} % "
          f"regret mean {regret.mean():8.5f} worst {regret.max():7.4f}")


def main():
    folder, n, program = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    torch.backends.cuda.matmul.allow_tf32 = False
    import json
    vocab = json.load(open(folder + "/config.json"))["vocab_size"]
    ids = tokens(n, vocab)
    f32, _ = theirs(folder, ids, torch.float32, "eager")
    eager, _ = theirs(folder, ids, torch.bfloat16, "eager")
    sdpa, _ = theirs(folder, ids, torch.bfloat16, "sdpa")
    our32 = ours(program, folder, ids, "fp32", vocab)
    our16 = ours(program, folder, ids, "bf16", vocab)
    import transformers
    print(f"{folder.rsplit('/', 1)[-1]}, {n} tokens, torch {torch.__version__}, transformers {transformers.__version__}, "
          f"sd of logits {f32.std():.2f}")
    compare("transformers fp32 / ours fp32", f32, our32)
    compare("transformers fp32 / its bf16 eager", f32, eager)
    compare("transformers fp32 / its bf16 sdpa", f32, sdpa)
    compare("transformers fp32 / ours bf16", f32, our16)
    compare("its bf16 eager / its bf16 sdpa", eager, sdpa)
    compare("its bf16 eager / ours bf16", eager, our16)
    compare("ours fp32 / its bf16 eager", our32, eager)
    if "--keep" in sys.argv:
        at = sys.argv.index("--keep")
        f32[: int(sys.argv[at + 2])].astype("<f4").tofile(sys.argv[at + 1])


if __name__ == "__main__":
    main()
