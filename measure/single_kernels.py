#!/usr/bin/env python3
"""Times of matrix products and attention kernels on the GPU here, as `stepsim kernels` and `fit.py kernels` read them.

  python3 measure/single_kernels.py FOLDER [SECTION...]

Writes FOLDER/gemm.csv and FOLDER/attention.csv. Sections: products, sustained, thin, eight_bits, grouped, attention, masked,
flex."""

import contextlib
import itertools
import sys
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import timing

folder, *wanted = sys.argv[1:] or sys.exit(__doc__)
GEMM = "id source source_rev hardware op dtype batch M N K layout groups extra time_ms tflops software notes".split()
ATTENTION = "id source source_rev hardware op kernel dtype batch queries keys heads head_dim causal time_ms tflops notes".split()
SOURCE = "measured by this project, measure/single_kernels.py"
products = timing.Table(folder, "gemm.csv", GEMM)
attentions = timing.Table(folder, "attention.csv", ATTENTION)
gpu, software = timing.gpu_name(), timing.software()


def bf16(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def product(kind, m, n, k, seconds, *, op="gemm", dtype="bf16", groups="", layout="", notes=""):
    work = 2 * m * n * k * (groups or 1)
    products.add(id=f"own-{gpu.split('-')[0].lower()}-{kind}-{m}-{n}-{k}" + (f"-g{groups}" if groups else ""), source=SOURCE, hardware=gpu, op=op,
                 dtype=dtype, M=m, N=n, K=k, layout=layout, groups=groups, time_ms=round(seconds * 1e3, 5),
                 tflops=round(work / seconds / 1e12, 1), software=software, notes=notes)


# (outputs, inputs) of linear layers of Qwen3-0.6B, Llama-3.2-1B, Qwen3-4B, Llama-3.1-8B, Qwen3-32B and a vocabulary.
LAYERS = [(1024, 3072), (3072, 1024), (2048, 2048), (8192, 2048), (2560, 9728), (9728, 2560), (4096, 4096), (6144, 4096),
          (14336, 4096), (4096, 14336), (25600, 5120), (5120, 25600)]


def training_products():
    for tokens, (out, inner) in itertools.product([1024, 4096, 16384], LAYERS):
        x, w, g = bf16(tokens, inner), bf16(out, inner), bf16(tokens, out)
        product("fwd", tokens, out, inner, timing.gpu_seconds(lambda: F.linear(x, w)), layout="TN")
        if tokens == 4096 or out > 5000:
            product("dx", tokens, inner, out, timing.gpu_seconds(lambda: g @ w), layout="NN")
            product("dw", out, inner, tokens, timing.gpu_seconds(lambda: g.T @ x), layout="NT")
    x, w = bf16(4096, 2048), bf16(151936, 2048)
    product("head", 4096, 151936, 2048, timing.gpu_seconds(lambda: F.linear(x, w)), layout="TN")


def sustained():
    """The same product for three seconds without a pause, and in pieces of 30 ms with pauses as long."""
    for size in (4096, 8192):
        x, w = bf16(size, size), bf16(size, size)
        product("single", size, size, size, timing.gpu_seconds(lambda: x @ w, rounds=3), layout="NN")
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        calls = int(3.0 / timing.gpu_seconds(lambda: x @ w))
        for _ in range(calls // 2):
            x @ w
        begin.record()
        for _ in range(calls // 2):
            x @ w
        end.record()
        end.synchronize()
        product("sustained", size, size, size, begin.elapsed_time(end) / 1e3 / (calls // 2), layout="NN", notes="three seconds without a pause, the second half")
        time.sleep(1)


def thin():
    for tokens, (out, inner) in itertools.product([1, 8, 32, 64, 128, 256], [(6144, 4096), (4096, 14336), (28672, 4096), (2048, 2048)]):
        x, many = bf16(tokens, inner), [bf16(out, inner) for _ in range(max(1, 2**28 // (out * inner)))]  # beyond the L2 cache
        turn = itertools.cycle(many)
        product("thin", tokens, out, inner, timing.gpu_seconds(lambda: F.linear(x, next(turn)), least=0.01), layout="TN")


def eight_bits():
    one = torch.ones((), device="cuda")
    for tokens, (out, inner) in itertools.product([1024, 4096, 8192, 16384], [(4096, 4096), (6144, 4096), (14336, 4096), (4096, 14336), (25600, 5120), (5120, 25600), (8192, 8192)]):
        x, w = bf16(tokens, inner).to(torch.float8_e4m3fn), bf16(out, inner).to(torch.float8_e4m3fn)
        for name, fast in (("tensor", True), ("tensor-exact", False)):
            call = lambda: torch._scaled_mm(x, w.T, scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=fast)
            product("fp8-" + name, tokens, out, inner, timing.gpu_seconds(call), dtype="fp8", layout="TN", notes="one scale a tensor" + ("" if fast else ", exact sums"))
        rows, columns = torch.ones(tokens, 1, device="cuda"), torch.ones(1, out, device="cuda")
        call = lambda: torch._scaled_mm(x, w.T, scale_a=rows, scale_b=columns, out_dtype=torch.bfloat16, use_fast_accum=True)
        product("fp8-row", tokens, out, inner, timing.gpu_seconds(call), dtype="fp8", layout="TN", notes="a scale for each row")
        xb, wb = bf16(tokens, inner), bf16(out, inner)
        product("beside-fp8", tokens, out, inner, timing.gpu_seconds(lambda: F.linear(xb, wb)), layout="TN")


def grouped():
    # Experts of Qwen3-30B-A3B, OLMoE, GPT-OSS, Mixtral: how many, model's width, expert's width.
    for (experts, wide, inner), rows in itertools.product([(128, 2048, 768), (64, 2048, 1024), (32, 2880, 2880), (8, 4096, 14336)], [16, 128, 512, 2048]):
        x, w = bf16(experts * rows, wide), bf16(experts, wide, inner)
        if experts * inner * rows > 2**28:
            continue
        ends = torch.arange(1, experts + 1, device="cuda", dtype=torch.int32) * rows
        g = bf16(experts * rows, inner)
        product("grouped", rows, inner, wide, timing.gpu_seconds(lambda: torch._grouped_mm(x, w, offs=ends)), op="grouped_gemm", groups=experts, layout="fwd", notes="M is tokens per group")
        product("grouped-dx", rows, wide, inner, timing.gpu_seconds(lambda: torch._grouped_mm(g, w.transpose(1, 2), offs=ends)), op="grouped_gemm", groups=experts, layout="bwd_grad_act", notes="M is tokens per group")
        product("grouped-dw", rows, inner, wide, timing.gpu_seconds(lambda: torch._grouped_mm(x.T, g, offs=ends)), op="grouped_gemm", groups=experts, layout="bwd_grad_w", notes="M is tokens per group")
        small = w[0]
        part = x[:rows]
        product("one-of", rows, inner, wide, timing.gpu_seconds(lambda: part @ small, least=0.005), layout="NN", notes="one expert by itself")


def attention_rows():
    backends = {"flash2": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION, "efficient": SDPBackend.EFFICIENT_ATTENTION}
    for (name, backend), (batch, length, heads, wide), causal in itertools.product(
            backends.items(), [(32, 512, 32, 128), (8, 2048, 32, 128), (4, 4096, 32, 128), (2, 8192, 32, 128), (1, 16384, 32, 128), (1, 32768, 16, 128),
                               (8, 2048, 16, 64), (2, 8192, 32, 64), (64, 256, 32, 128), (1, 4096, 8, 128)], [True, False]):
        if not causal and length not in (512, 4096, 16384):
            continue
        q, k, v = (bf16(batch, heads, length, wide).requires_grad_() for _ in range(3))
        work = 4 * batch * heads * length * length * wide / (2 if causal else 1)
        with sdpa_kernel(backend):
            attend = lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal)
            try:
                with torch.no_grad():
                    forward = timing.gpu_seconds(attend)
                out = attend()
                g = torch.randn_like(out)
                backward = timing.gpu_seconds(lambda: torch.autograd.grad(out, (q, k, v), g, retain_graph=True), graph=False)
            except RuntimeError as problem:
                print(name, batch, length, heads, wide, problem, flush=True)
                continue
        for op, seconds, times in (("attention_fwd", forward, 1), ("attention_bwd", backward, 2.5)):
            attentions.add(id=f"own-{gpu.split('-')[0].lower()}-{name}-{op[-3:]}-b{batch}-s{length}-h{heads}-d{wide}-{'causal' if causal else 'full'}", source=SOURCE, hardware=gpu,
                           op=op, kernel=name, dtype="bf16", batch=batch, queries=length, keys=length, heads=heads, head_dim=wide, causal="yes" if causal else "no",
                           time_ms=round(seconds * 1e3, 5), tflops=round(times * work / seconds / 1e12, 1), notes=software)


def masked():
    """Rows that end early, as a mask of pairs says: causal and padded. Counted are all pairs."""
    for batch, length, heads, wide in [(32, 512, 32, 128), (8, 2048, 32, 128), (2, 8192, 32, 128), (8, 2048, 32, 64), (2, 8192, 32, 64), (8, 1000, 32, 64)]:
        q, k, v = (bf16(batch, heads, length, wide).requires_grad_() for _ in range(3))
        ends = torch.linspace(length / 4, length, batch, device="cuda").long()
        at = torch.arange(length, device="cuda")
        mask = ((at[:, None] >= at)[None] & (at < ends[:, None])[:, None])[:, None]
        for name, backend in {"cudnn": SDPBackend.CUDNN_ATTENTION, "efficient": SDPBackend.EFFICIENT_ATTENTION, "chosen": None}.items():
            try:
                with sdpa_kernel(backend) if backend is not None else contextlib.nullcontext():
                    attend = lambda: F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
                    with torch.no_grad():
                        forward = timing.gpu_seconds(attend, graph=False)
                    out = attend()
                    g = torch.randn_like(out)
                    backward = timing.gpu_seconds(lambda: torch.autograd.grad(out, (q, k, v), g, retain_graph=True), graph=False)
            except RuntimeError as problem:
                print(name, batch, length, heads, wide, str(problem)[:200], flush=True)
                continue
            for op, seconds, times in (("attention_fwd", forward, 1), ("attention_bwd", backward, 2.5)):
                attentions.add(id=f"own-{gpu.split('-')[0].lower()}-{name}-masked-{op[-3:]}-b{batch}-s{length}-h{heads}-d{wide}", source=SOURCE, hardware=gpu, op=op, kernel=f"{name}-masked",
                               dtype="bf16", batch=batch, queries=length, keys=length, heads=heads, head_dim=wide, causal="no", time_ms=round(seconds * 1e3, 5),
                               tflops=round(times * 4 * batch * heads * length * length * wide / seconds / 1e12, 1), notes=software + ", a mask of pairs")


def flex():
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    compiled = torch.compile(flex_attention, dynamic=False)
    for batch, length, heads, wide in [(4, 4096, 32, 128), (1, 16384, 32, 128), (4, 4096, 32, 64)]:
        q, k, v = (bf16(batch, heads, length, wide).requires_grad_() for _ in range(3))
        mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, length, length, device="cuda")
        work = 2 * batch * heads * length * length * wide
        with torch.no_grad():
            forward = timing.gpu_seconds(lambda: compiled(q, k, v, block_mask=mask), graph=False)
        out = compiled(q, k, v, block_mask=mask)
        g = torch.randn_like(out)
        backward = timing.gpu_seconds(lambda: torch.autograd.grad(out, (q, k, v), g, retain_graph=True), graph=False)
        for op, seconds, times in (("attention_fwd", forward, 1), ("attention_bwd", backward, 2.5)):
            attentions.add(id=f"own-{gpu.split('-')[0].lower()}-flex-{op[-3:]}-b{batch}-s{length}-h{heads}-d{wide}-causal", source=SOURCE, hardware=gpu, op=op, kernel="flex",
                           dtype="bf16", batch=batch, queries=length, keys=length, heads=heads, head_dim=wide, causal="yes", time_ms=round(seconds * 1e3, 5),
                           tflops=round(times * work / seconds / 1e12, 1), notes=software)


timing.sections(wanted, {"products": training_products, "sustained": sustained, "thin": thin, "eight_bits": eight_bits, "grouped": grouped,
                         "attention": attention_rows, "masked": masked, "flex": flex})
