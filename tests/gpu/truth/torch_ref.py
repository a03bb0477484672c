#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Time torch.mm (cuBLAS) on the probe's shapes, hot and after a 256 MiB read flush, medians of 300 event windows. Needs torch and a GPU."""
import json
import statistics
import sys
import torch

def main():
    torch.manual_seed(1)
    noise = torch.ones(64 << 20, dtype=torch.int32, device="cuda")
    for shape in sys.argv[1:] or ["4096,4096,4096", "8192,8192,8192", "2048,2048,2048", "1000,1016,520", "300,72,40", "333,517,129"]:
        m, n, k = map(int, shape.split(","))
        a = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
        b = torch.randn(n, k, device="cuda", dtype=torch.bfloat16)
        c = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
        row = {"library": "torch.mm", "torch": torch.__version__, "M": m, "N": n, "K": k}
        for name, cold in ("hot", False), ("cold", True):
            for _ in range(20):
                torch.mm(a, b.t(), out=c)
            pairs = []
            for _ in range(300):
                if cold:
                    noise.sum()
                start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                start.record()
                torch.mm(a, b.t(), out=c)
                stop.record()
                pairs.append((start, stop))
            torch.cuda.synchronize()
            us = statistics.median(s.elapsed_time(t) * 1e3 for s, t in pairs)
            row[name + "_us"] = round(us, 3)
            row[name + "_tflops"] = round(2e-6 * m * n * k / us, 1)
        print(json.dumps(row), flush=True)

main()
