#!/usr/bin/env python3
"""Kernels of layers without attention, and DeepSpeed's optimizer on the host, out of their own repositories.

  PYTHONPATH=mamba:flash-linear-attention python3 measure/mixers.py FOLDER [SECTION...]

Writes FOLDER/mixers.csv. Sections: state_space, delta, convolution, host_adam; the last two build C++ and CUDA out of
CONV (causal-conv1d/csrc) and DEEPSPEED (DeepSpeed/csrc), which the environment names. With few tokens the host's
launches may be in the way: graphs cannot hold these kernels."""

import os
import pathlib
import subprocess
import sys
import time
import types

import torch

import timing

folder, *wanted = sys.argv[1:] or sys.exit(__doc__)
figures = timing.Table(folder, "mixers.csv", "id hardware what size value unit software notes".split())
gpu, software = timing.gpu_name(), timing.software()


def figure(name, seconds, *, size="", notes=""):
    figures.add(id=name, hardware=gpu, size=size, value=f"{seconds * 1e6:.5g}", unit="us", software=software, notes=notes)


def randn(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape, device="cuda", dtype=dtype)


def both(name, size, inputs, work):
    with torch.no_grad():
        figure(name + "-forward", timing.gpu_seconds(work, graph=False), size=size)
    out = work()
    out = out[0] if isinstance(out, tuple) else out
    g = torch.randn_like(out)
    figure(name + "-backward", timing.gpu_seconds(lambda: torch.autograd.grad(out, inputs, g, retain_graph=True), graph=False), size=size)


def state_space():
    # Only its Triton kernels: the package itself asks for CUDA extensions that are not built here.
    for place in sys.path:
        if (pathlib.Path(place) / "mamba_ssm/ops").is_dir():
            for name in ("mamba_ssm", "mamba_ssm.ops", "mamba_ssm.utils"):
                package = types.ModuleType(name)
                package.__path__ = [str(pathlib.Path(place) / name.replace(".", "/"))]
                sys.modules[name] = package
            break
    for name in ("causal_conv1d", "selective_scan_cuda"):
        sys.modules.setdefault(name, None)
    from mamba_ssm.ops.triton.ssd_combined import mamba_chunk_scan_combined
    for rows, length, heads, wide, groups, state, chunk in [(1, 4096, 128, 64, 8, 128, 128), (2, 8192, 128, 64, 8, 128, 128), (2, 8192, 64, 64, 8, 128, 128), (1, 8192, 128, 64, 8, 128, 256), (1, 4096, 80, 64, 1, 128, 256)]:
        x = randn(rows, length, heads, wide).requires_grad_()
        dt, decay = randn(rows, length, heads).requires_grad_(), (-torch.rand(heads, device="cuda") - 0.5).requires_grad_()
        b, c = (randn(rows, length, groups, state).requires_grad_() for _ in range(2))
        skip, bias = torch.ones(heads, device="cuda").requires_grad_(), torch.zeros(heads, device="cuda").requires_grad_()
        both("state_space", f"{rows}x{length} tokens, {heads} heads of {wide}, {groups} groups, state {state}, chunk {chunk}", (x, dt, decay, b, c, skip, bias),
             lambda: mamba_chunk_scan_combined(x, dt, decay, b, c, chunk, D=skip, dt_bias=bias, dt_softplus=True))


def delta():
    from fla.ops.gated_delta_rule import chunk_gated_delta_rule
    for rows, length, heads, wide in [(1, 4096, 32, 128), (2, 8192, 32, 128), (4, 2048, 32, 128), (1, 8192, 16, 128)]:
        q, k, v = (randn(rows, length, heads, wide).requires_grad_() for _ in range(3))
        gate, beta = (-torch.rand(rows, length, heads, device="cuda")).requires_grad_(), torch.rand(rows, length, heads, device="cuda", dtype=torch.bfloat16).requires_grad_()
        both("delta", f"{rows}x{length} tokens, {heads} heads of {wide}", (q, k, v, gate, beta), lambda: chunk_gated_delta_rule(q, k, v, gate, beta, use_qk_l2norm_in_kernel=True))


def convolution():
    from torch.utils.cpp_extension import load
    source = pathlib.Path(os.environ["CONV"])
    built = load("causal_conv1d_cuda", [str(source / file) for file in ("causal_conv1d.cpp", "causal_conv1d_fwd.cu", "causal_conv1d_bwd.cu", "causal_conv1d_update.cu")],
                 extra_cuda_cflags=["-O3", "-U__CUDA_NO_BFLOAT16_OPERATORS__", "-U__CUDA_NO_BFLOAT16_CONVERSIONS__", "-U__CUDA_NO_HALF_OPERATORS__", "--expt-relaxed-constexpr", "--expt-extended-lambda", "--use_fast_math"])
    for rows, length, channels in [(1, 4096, 10240), (2, 8192, 10240), (2, 8192, 6144)]:
        x, weight, bias = randn(rows, length, channels).transpose(1, 2), randn(channels, 4), randn(channels)
        out, g = torch.empty_like(x), randn(rows, length, channels).transpose(1, 2)
        dx, dw, db = torch.empty_like(x), torch.zeros(channels, 4, device="cuda"), torch.zeros(channels, device="cuda")
        size = f"{rows}x{length} tokens, {channels} channels"
        figure("convolution-forward", timing.gpu_seconds(lambda: built.causal_conv1d_fwd(x, weight, bias, None, None, out, None, True), graph=False), size=size)
        figure("convolution-backward", timing.gpu_seconds(lambda: built.causal_conv1d_bwd(x, weight, bias, g, None, None, None, dx, dw, db, None, True), graph=False), size=size)


def host_adam():
    """Each number of threads in a process of its own: OpenMP asks once."""
    if "THREADS" not in os.environ:
        for threads in (1, 2, 4, 8, 16):
            subprocess.run([sys.executable, __file__, folder, "host_adam"], env=os.environ | {"THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}, check=False)
        return
    from torch.utils.cpp_extension import load
    source = pathlib.Path(os.environ["DEEPSPEED"])
    wide = ["-D__AVX512__"] if "avx512f" in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8") else ["-D__AVX256__"]
    built = load("ds_cpu_adam", [str(source / "adam" / file) for file in ("cpu_adam.cpp", "cpu_adam_impl.cpp")], extra_include_paths=[str(source / "includes")],
                 extra_cflags=["-O3", "-march=native", "-fopenmp", "-D__DISABLE_CUDA__", *wide], extra_ldflags=["-fopenmp"])
    numbers = 2**28
    for dtype in (torch.float32, torch.bfloat16):
        parameter, gradient = (torch.rand(numbers).to(dtype) for _ in range(2))
        first, second = (torch.rand(numbers) for _ in range(2))
        built.create_adam(0, 1e-4, 0.9, 0.999, 1e-8, 0.01, True, False)
        times = []
        for at in range(1, 5):
            begin = time.perf_counter()
            built.adam_update(0, at, 1e-4, 0.9, 0.999, 1e-8, 0.01, True, parameter, gradient, first, second)
            times.append(time.perf_counter() - begin)
        figures.add(id="deepspeed-cpu-adam", hardware=gpu, what=str(dtype).removeprefix("torch."), size=f"{os.environ['THREADS']} threads", value=f"{numbers / sorted(times)[1] / 1e9:.4g}",
                    unit="1e9 numbers/s", software=software)


timing.sections(wanted, {"state_space": state_space, "delta": delta, "convolution": convolution, "host_adam": host_adam})
