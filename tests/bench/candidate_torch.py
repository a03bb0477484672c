#!/usr/bin/env python3
"""candidate_torch.py KERNEL.cu - the same kernel in a harness of torch.utils.cpp_extension.load_inline.

What such a harness does for one candidate: build, load, compare once with torch, time with events. The folder of
builds is new, as for every new text. Prints seconds, process start included where Linux says when that was.

SPDX-License-Identifier: MIT
"""
import os
import sys
import tempfile
import time

begin = time.time()
try:
    ticks = int(open("/proc/self/stat").read().rsplit(")", 1)[1].split()[19])
    up = float(open("/proc/uptime").read().split()[0])
    begin -= max(0.0, up - ticks / os.sysconf("SC_CLK_TCK"))
except (OSError, ValueError, IndexError):
    pass

os.environ["TORCH_EXTENSIONS_DIR"] = tempfile.mkdtemp(prefix="extensions.")
import torch  # noqa: E402
from torch.utils.cpp_extension import load_inline  # noqa: E402

marks = [("start of python and torch", time.time() - begin)]


def mark(name, since):
    marks.append((name, time.time() - since))
    return time.time()


kernel = open(sys.argv[1]).read()
at = time.time()
torch.zeros(1, device="cuda").add_(1)
torch.cuda.synchronize()
major, minor = torch.cuda.get_device_capability()
os.environ["TORCH_CUDA_ARCH_LIST"] = "%d.%d%s" % (major, minor, "a" if major >= 9 else "")
at = mark("context", at)
module = load_inline(
    name="candidate",
    cpp_sources="torch::Tensor run(torch::Tensor x);",
    cuda_sources=kernel + """
torch::Tensor run(torch::Tensor x)
{
    auto y = torch::empty_like(x);
    int n = (int)x.numel();
    stream<<<n / 1024, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
""",
    functions=["run"])
at = mark("load_inline", at)
for n in (33554432, 16777216):
    x = torch.randn(n, device="cuda")
    if not torch.allclose(module.run(x), 2 * x + 1):
        sys.exit("wrong")
at = mark("check", at)
for n in (33554432, 16777216):
    x = torch.randn(n, device="cuda")
    for _ in range(25):
        module.run(x)
    events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(100)]
    for first, last in events:
        first.record()
        module.run(x)
        last.record()
    torch.cuda.synchronize()
    print("%d floats: %.1f us, warm" % (n, 1000 * sorted(a.elapsed_time(b) for a, b in events)[50]))
mark("time", at)
for name, seconds in marks:
    print("%-26s %7.2f s" % (name, seconds))
print("%-26s %7.2f s" % ("load_inline harness", time.time() - begin))
