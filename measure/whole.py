#!/usr/bin/env python3
"""Whole models as one rank of ZeRO, from the first step on: each micro-step's time and the memory that it needs.

  python3 measure/whole.py FOLDER [ROW...]

Writes FOLDER/whole.csv, a line for each phase of each step, and FOLDER/whole-hooks.csv, calls and time of DeepSpeed's
functions in the last step. As in sharded.py the collectives send nothing. Update k of a row has as many micro-steps as
its list says."""

import collections
import functools
import os
import sys
import time

import sharded  # first: it sets the environment
import torch
from torch import distributed
from torch.testing._internal.distributed.fake_pg import FakeStore

import timing

LINEAR = torch.nn.functional.linear
TENSORS = {"zero": 3, "leaf": True, "reuse": 0, "sub_group": 0, "checkpoints": True, "bits": 8}
GROUPS = {"zero": 3, "leaf": True, "reuse": 0, "checkpoints": True}
OFFLOAD = {"zero": 3, "offload": True, "parameters": "cpu", "bucket": 50000000, "threads": 1}
# model, rows, tokens of a row, ranks, micro-steps of each update, and what differs from a plain loop
ROWS = {
    "experts-24-tensors": ("experts-24", 1, 4096, 8, [1, 1, 2], TENSORS | {"experts": 128}),
    "experts-24-tensors-wrapped": ("experts-24", 1, 4096, 8, [1, 1], TENSORS | {"experts": 128, "wrapped": True}),
    "experts-48-tensors": ("experts-48", 1, 4096, 8, [1, 2], TENSORS | {"experts": 128}),
    "mpt-7b-offload": ("mpt-7b", 1, 256, 2, [2, 2], OFFLOAD),
    "mpt-7b-offload-wrapped": ("mpt-7b", 1, 256, 2, [3, 2], OFFLOAD | {"wrapped": True, "threads": 16}),
    "experts-8": ("experts-8", 1, 4096, 8, [1, 1, 1], GROUPS | {"experts": 128}),
    "experts-8-wrapped": ("experts-8", 1, 4096, 8, [1, 1, 1], GROUPS | {"experts": 128, "wrapped": True}),
    "experts-24-rows": ("experts-24", 2, 8192, 8, [1, 2], GROUPS | {"experts": 128, "wrapped": True}),
    "qwen3-8b-zero3": ("qwen3-8b", 2, 4096, 8, [1, 1, 2], {"zero": 3, "checkpoints": True}),
    "qwen3-8b-zero3-wrapped": ("qwen3-8b", 2, 4096, 8, [1, 1, 2], {"zero": 3, "checkpoints": True, "wrapped": True}),
    "qwen3-8b-zero3-plain": ("qwen3-8b", 1, 4096, 8, [1, 1, 2], {"zero": 3, "wrapped": True}),
    "qwen3-8b-zero2": ("qwen3-8b", 2, 4096, 8, [1, 1, 2], {"zero": 2, "checkpoints": True}),
}


def pools():
    """What the allocator holds for each stream, the largest first."""
    held = collections.Counter()
    for segment in torch.cuda.memory_snapshot():
        held[segment["stream"]] += segment["total_size"]
    return sorted(held.values(), reverse=True)


def measured(name, phases, hooks):
    which, rows, length, ranks, updates, changes = ROWS[name]
    distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=ranks)
    begin = time.perf_counter()
    model = sharded.made(which, changes)
    tensors = sum(1 for _ in model.parameters())
    engine = sharded.under_zero(model, changes)
    known = dict(id="whole-" + name, run=sharded.began, hardware=timing.gpu_name(), software=f"{timing.software()}, DeepSpeed {sys.modules['deepspeed'].__version__}", model=which, tensors=tensors,
                 rows=rows, length=length, ranks=ranks, changes=" ".join(f"{key}:{value}" for key, value in changes.items()))
    words = torch.randint(3, model.config.vocab_size, (rows, length), device="cuda")
    seen = collections.defaultdict(lambda: [0, 0.0])
    sharded.watched(engine.optimizer, seen)

    def phase(update, micro, what, work):
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        begin = time.perf_counter()
        result = work()
        torch.cuda.synchronize()
        free, all_of_it = torch.cuda.mem_get_info()
        phases.add(**known, update=update, micro=micro, phase=what, ms=round((time.perf_counter() - begin) * 1e3, 3), allocated=torch.cuda.max_memory_allocated(),
                   reserved=torch.cuda.max_memory_reserved(), device=all_of_it - free, pools=" ".join(str(size) for size in pools()))
        return result

    torch.cuda.empty_cache()
    torch.set_num_threads(changes.get("threads", os.cpu_count()))
    phases.add(**known, update=0, micro=0, phase="start", ms=round((time.perf_counter() - begin) * 1e3, 3), allocated=torch.cuda.memory_allocated(), reserved=torch.cuda.memory_reserved())
    for update, micro_steps in enumerate(updates, 1):
        seen.clear()
        for micro in range(1, micro_steps + 1):
            engine.set_gradient_accumulation_boundary(micro == micro_steps)
            loss = phase(update, micro, "forward", lambda: engine(input_ids=words, labels=words).loss)
            phase(update, micro, "backward", lambda: engine.backward(loss))
            phase(update, micro, "update" if micro == micro_steps else "between", engine.step)
            del loss
    for function, (calls, seconds) in seen.items():
        hooks.add(id="whole-" + name, run=sharded.began, function=function, calls=calls, ms=round(seconds * 1e3, 3))
    engine.destroy()
    torch.nn.functional.linear = LINEAR
    distributed.destroy_process_group()


def main():
    folder, *wanted = sys.argv[1:] or sys.exit(__doc__)
    phases = timing.Table(folder, "whole.csv", "id run hardware software model tensors rows length ranks changes update micro phase ms allocated reserved device pools".split())
    hooks = timing.Table(folder, "whole-hooks.csv", "id run function calls ms".split())
    timing.sections(wanted, {name: functools.partial(measured, name, phases, hooks) for name in ROWS})


main()
