#!/usr/bin/env python3
"""How fast PyTorch's allocator gives memory that was written back to the driver, and takes it again.

  python3 measure/flush.py             whole blocks
  PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True python3 measure/flush.py"""

import os
import time

import torch

kind = "segments" if "expandable" in os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "") else "blocks"


def timed(work):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    kept = work()
    torch.cuda.synchronize()
    return time.perf_counter() - begin, kept


for piece in (2**26, 2**28, 2**30):
    count = 20 * 2**30 // piece
    take = lambda: [torch.empty(piece, dtype=torch.uint8, device="cuda") for _ in range(count)]
    for turn in range(4):
        taken, parts = timed(take)
        for part in parts:
            part.fill_(turn)
        del parts
        given, _ = timed(torch.cuda.empty_cache)
        if turn:
            print(f"{kind} of {piece >> 20} MiB: 20 GiB taken in {taken * 1e3:.1f} ms, given back in {given * 1e3:.1f} ms, {2 * count * piece / (taken + given) / 1e9:.0f} GB/s", flush=True)
