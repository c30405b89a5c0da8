#!/usr/bin/env python3
"""Steps of a few layers of Llama-3-8B on the GPU here, and of narrow ones that keep the host busy, as training code without Hugging Face runs them: fused norm, products in
16 or 8 bits, with and without torch.compile, with and without FSDP2 around each layer.

  python3 measure/compiled.py FOLDER [ROW...]

Writes FOLDER/compiled.csv and FOLDER/kernels-of-compiled.csv. Products of 8 bits need torchao."""

import collections
import functools
import os
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.profiler import ProfilerActivity, profile
from torch.utils.checkpoint import checkpoint

import timing

SIZE, LAYERS, WORDS = 128, 8, 128256  # of a head; a quarter of the heads have keys of their own, and the inner width is 3.5 times the model's
# rows, tokens of a row, compile, 8 bits, recomputation, FSDP2; a model 512 wide keeps the host busier than the GPU
ROWS = {
    "eager": (1, 8192, False, None, False, False),
    "compiled": (1, 8192, True, None, False, False),
    "eager-checkpoints": (2, 8192, False, None, True, False),
    "compiled-checkpoints": (2, 8192, True, None, True, False),
    "compiled-tensorwise": (1, 8192, True, "tensorwise", False, False),
    "compiled-rowwise": (1, 8192, True, "rowwise", False, False),
    "eager-fsdp": (1, 8192, False, None, False, True),
    "compiled-fsdp": (1, 8192, True, None, False, True),
    "compiled-tensorwise-fsdp": (1, 8192, True, "tensorwise", False, True),
    "eager-narrow": (1, 64, False, None, False, False),
    "compiled-narrow": (1, 64, True, None, False, False),
    "eager-narrow-fsdp": (1, 64, False, None, False, True),
    "compiled-narrow-fsdp": (1, 64, True, None, False, True),
    "eager-short": (1, 2048, False, None, False, False),
    "compiled-short": (1, 2048, True, None, False, False),
    "compiled-tensorwise-short": (1, 2048, True, "tensorwise", False, False),
}


def turned(x, turns):
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turns[None, :, None]).flatten(3).type_as(x)


class Layer(nn.Module):
    def __init__(self, wide):
        super().__init__()
        heads, inner = wide // SIZE, wide * 7 // 2
        self.first, self.second = nn.RMSNorm(wide, eps=1e-5), nn.RMSNorm(wide, eps=1e-5)
        self.q, self.o = nn.Linear(wide, wide, bias=False), nn.Linear(wide, wide, bias=False)
        self.k, self.v = nn.Linear(wide, SIZE * (heads // 4), bias=False), nn.Linear(wide, SIZE * (heads // 4), bias=False)
        self.gate, self.up, self.down = nn.Linear(wide, inner, bias=False), nn.Linear(wide, inner, bias=False), nn.Linear(inner, wide, bias=False)

    def forward(self, x, turns):
        rows, length, wide = x.shape
        y = self.first(x)
        q, k, v = (part(y).view(rows, length, -1, SIZE) for part in (self.q, self.k, self.v))
        q, k = turned(q, turns), turned(k, turns)
        k, v = (part.repeat_interleave(4, dim=2) for part in (k, v))
        y = F.scaled_dot_product_attention(*(part.transpose(1, 2) for part in (q, k, v)), is_causal=True)
        x = x + self.o(y.transpose(1, 2).reshape(rows, length, wide))
        y = self.second(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Model(nn.Module):
    def __init__(self, recompute, wide):
        super().__init__()
        words = WORDS * wide // 4096
        self.words, self.layers = nn.Embedding(words, wide), nn.ModuleList(Layer(wide) for _ in range(LAYERS))
        self.norm, self.head, self.recompute = nn.RMSNorm(wide, eps=1e-5), nn.Linear(wide, words, bias=False), recompute

    def forward(self, words, turns):
        x = self.words(words)
        for layer in self.layers:
            x = checkpoint(layer, x, turns, use_reentrant=False) if self.recompute else layer(x, turns)
        return self.head(self.norm(x))


def measured(name, steps, kernels):
    rows, length, compiled, eight, recompute, sharded = ROWS[name]
    torch._dynamo.reset()
    torch.manual_seed(0)
    with torch.device("cuda"):
        model = Model(recompute, 512 if "narrow" in name else 4096)
    if not sharded:
        model.to(torch.bfloat16)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.02) if parameter.dim() > 1 else nn.init.ones_(parameter)
    if eight:
        from torchao.float8 import Float8LinearConfig, convert_to_float8_training
        config = Float8LinearConfig(enable_fsdp_float8_all_gather=sharded) if eight == "tensorwise" else Float8LinearConfig.from_recipe_name("rowwise")
        convert_to_float8_training(model, config=config, module_filter_fn=lambda module, path: path != "head")
    if compiled:
        for layer in model.layers:
            layer.compile(fullgraph=True)
    if sharded:
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        for layer in model.layers:
            fully_shard(layer, mp_policy=policy)
        fully_shard(model, mp_policy=policy)
    update = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    words = torch.randint(model.words.num_embeddings, (rows, length), device="cuda")
    angles = torch.outer(torch.arange(length, device="cuda").float(), 1 / 500000 ** (torch.arange(0, SIZE, 2, device="cuda").float() / SIZE))
    turns = torch.polar(torch.ones_like(angles), angles)
    phases = []

    def step(timed=False):
        marks = [time.perf_counter()]

        def mark():
            if timed:
                torch.cuda.synchronize()
                marks.append(time.perf_counter())
        loss = F.cross_entropy(model(words, turns).flatten(0, 1).float(), words.flatten())
        mark()
        loss.backward()
        mark()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        update.step()
        update.zero_grad()
        mark()
        phases[:] = [end - begin for begin, end in zip(marks, marks[1:])]

    for _ in range(4):
        step()
    torch.cuda.reset_peak_memory_stats()
    taken = []
    for _ in range(9):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        step()
        host = time.perf_counter() - begin
        torch.cuda.synchronize()
        taken.append((time.perf_counter() - begin, host))
    seconds, host = sorted(taken)[4]
    allocated, reserved = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
    step(timed=True)
    forward, backward, updating = phases
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        step()
        torch.cuda.synchronize()
    found = collections.defaultdict(lambda: [0, 0.0])
    for event in seen.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            found[event.name[:150]][0] += 1
            found[event.name[:150]][1] += event.device_time_total
    steps.add(id="own-llama8b-8-" + name, hardware=timing.gpu_name(), software=timing.software(), rows=rows, length=length, step_ms=round(seconds * 1e3, 3), host_ms=round(host * 1e3, 3),
              busy_ms=round(sum(entry[1] for entry in found.values()) / 1e3, 3), forward_ms=round(forward * 1e3, 3), backward_ms=round(backward * 1e3, 3), update_ms=round(updating * 1e3, 3),
              kernels=sum(entry[0] for entry in found.values()), allocated=allocated, reserved=reserved)
    for kernel, (count, micros) in sorted(found.items(), key=lambda item: -item[1][1])[:60]:
        kernels.add(id="own-llama8b-8-" + name, kernel=kernel, count=count, ms=round(micros / 1e3, 3))


def main():
    folder, *wanted = sys.argv[1:] or sys.exit(__doc__)
    os.environ.update(MASTER_ADDR="localhost", MASTER_PORT="29511", RANK="0", WORLD_SIZE="1")
    torch.distributed.init_process_group("nccl")
    steps = timing.Table(folder, "compiled.csv", "id hardware software rows length step_ms host_ms busy_ms forward_ms backward_ms update_ms kernels allocated reserved".split())
    kernels = timing.Table(folder, "kernels-of-compiled.csv", "id kernel count ms".split())
    timing.sections(wanted, {name: functools.partial(measured, name, steps, kernels) for name in ROWS})
    torch.distributed.destroy_process_group()


main()
