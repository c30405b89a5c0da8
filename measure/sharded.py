#!/usr/bin/env python3
"""What ZeRO and FSDP2 cost the host: steps as one of eight ranks, whose collectives are a group's that sends nothing.

  python3 measure/sharded.py FOLDER [ROW...]

Writes FOLDER/sharded.csv, a line for each of the rows below, and FOLDER/hooks.csv, calls and time of DeepSpeed's
functions in one step. Time and memory of exchanges are missing, launches of NCCL too, and numbers are whatever memory
held: only what the host does is right. Rows are small, so that the host is what a step waits for."""

import collections
import functools
import os
import sys
import time

os.environ |= {"RANK": "0", "WORLD_SIZE": "8", "LOCAL_RANK": "0", "MASTER_ADDR": "localhost", "MASTER_PORT": "29511", "DS_ACCELERATOR": "cuda"}

import torch
import transformers
from torch import distributed, nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore

import timing

RANKS = 8
began = time.strftime("%H:%M")  # one call of this script had one host
QWEN3 = dict(vocab_size=151936, head_dim=128, num_key_value_heads=8, tie_word_embeddings=True)
MODELS = {
    "qwen3-1.7b": ("Qwen3", QWEN3 | dict(hidden_size=2048, intermediate_size=6144, num_hidden_layers=28, num_attention_heads=16)),
    "qwen3-8b-12": ("Qwen3", QWEN3 | dict(hidden_size=4096, intermediate_size=12288, num_hidden_layers=12, num_attention_heads=32)),
    "mpt-350m": ("Mpt", dict(d_model=1024, n_heads=16, n_layers=24, expansion_ratio=4, max_seq_len=2048, vocab_size=50368)),
    "experts-4": ("Qwen3", QWEN3 | dict(hidden_size=2048, intermediate_size=6144, num_hidden_layers=4, num_attention_heads=32, num_key_value_heads=4)),
    "experts-24": ("Qwen3", QWEN3 | dict(hidden_size=2048, intermediate_size=64, num_hidden_layers=24, num_attention_heads=32, num_key_value_heads=4)),
    "experts-48": ("Qwen3", QWEN3 | dict(hidden_size=2048, intermediate_size=64, num_hidden_layers=48, num_attention_heads=32, num_key_value_heads=4)),
    "qwen3-8b": ("Qwen3", QWEN3 | dict(hidden_size=4096, intermediate_size=12288, num_hidden_layers=36, num_attention_heads=32, tie_word_embeddings=False)),
    "mpt-7b": ("Mpt", dict(d_model=4096, n_heads=32, n_layers=32, expansion_ratio=4, max_seq_len=2048, vocab_size=50432)),
    "experts-8": ("Qwen3", QWEN3 | dict(hidden_size=2048, intermediate_size=6144, num_hidden_layers=8, num_attention_heads=32, num_key_value_heads=4)),
}
# model, rows, tokens of a row, and what differs from a plain loop
ROWS = {
    "qwen3-1.7b": ("qwen3-1.7b", 1, 256, {}),
    "qwen3-1.7b-zero1": ("qwen3-1.7b", 1, 256, {"zero": 1}),
    "qwen3-1.7b-zero2": ("qwen3-1.7b", 1, 256, {"zero": 2}),
    "qwen3-1.7b-zero3": ("qwen3-1.7b", 1, 256, {"zero": 3}),
    "qwen3-1.7b-zero3-checkpoints": ("qwen3-1.7b", 1, 256, {"zero": 3, "checkpoints": True}),
    "qwen3-1.7b-checkpoints": ("qwen3-1.7b", 1, 256, {"checkpoints": True}),
    "qwen3-1.7b-checkpoints-reentrant": ("qwen3-1.7b", 1, 256, {"checkpoints": True, "reentrant": True}),
    "mpt-350m-checkpoints": ("mpt-350m", 1, 256, {"checkpoints": True}),
    "qwen3-8b-12-checkpoints": ("qwen3-8b-12", 1, 256, {"checkpoints": True}),
    "qwen3-8b-12-checkpoints-reentrant": ("qwen3-8b-12", 1, 256, {"checkpoints": True, "reentrant": True}),
    "experts-4-checkpoints": ("experts-4", 1, 1024, {"experts": 64, "checkpoints": True}),
    "experts-4-checkpoints-reentrant": ("experts-4", 1, 1024, {"experts": 64, "checkpoints": True, "reentrant": True}),
    "qwen3-1.7b-fsdp2-checkpoints": ("qwen3-1.7b", 1, 256, {"fsdp": True, "checkpoints": True}),
    "qwen3-1.7b-lora-autocast": ("qwen3-1.7b", 1, 256, {"lora": 16, "autocast": True}),
    "qwen3-1.7b-zero3-buckets": ("qwen3-1.7b", 1, 256, {"zero": 3, "bucket": 500000000}),
    "qwen3-1.7b-zero3-kept": ("qwen3-1.7b", 1, 256, {"zero": 3, "kept": True}),
    "qwen3-1.7b-zero2-buckets": ("qwen3-1.7b", 1, 256, {"zero": 2, "bucket": 500000000}),
    "qwen3-1.7b-lora": ("qwen3-1.7b", 1, 256, {"lora": 16}),
    "qwen3-1.7b-zero3-lora": ("qwen3-1.7b", 1, 256, {"zero": 3, "lora": 16}),
    "qwen3-1.7b-zero2-lora": ("qwen3-1.7b", 1, 256, {"zero": 2, "lora": 16}),
    "qwen3-8b-12": ("qwen3-8b-12", 1, 256, {}),
    "qwen3-8b-12-zero3": ("qwen3-8b-12", 1, 256, {"zero": 3}),
    "mpt-350m": ("mpt-350m", 1, 256, {}),
    "mpt-350m-zero2": ("mpt-350m", 1, 256, {"zero": 2}),
    "mpt-350m-zero3": ("mpt-350m", 1, 256, {"zero": 3}),
    "experts-4": ("experts-4", 1, 1024, {"experts": 64}),
    "experts-4-zero2": ("experts-4", 1, 1024, {"experts": 64, "zero": 2}),
    "experts-4-zero3": ("experts-4", 1, 1024, {"experts": 64, "zero": 3}),
    "experts-4-zero3-leaf": ("experts-4", 1, 1024, {"experts": 64, "zero": 3, "leaf": True}),
    "experts-4-zero3-no-reuse": ("experts-4", 1, 1024, {"experts": 64, "zero": 3, "reuse": 0}),
    "experts-4-zero3-tensors": ("experts-4", 1, 1024, {"experts": 64, "zero": 3, "reuse": 0, "sub_group": 0}),
    "experts-8-zero3-no-reuse": ("experts-8", 1, 1024, {"experts": 128, "zero": 3, "reuse": 0, "rounds": 3}),
    "qwen3-1.7b-fsdp2": ("qwen3-1.7b", 1, 256, {"fsdp": True}),
    "experts-4-fsdp2": ("experts-4", 1, 1024, {"experts": 64, "fsdp": True}),
    "qwen3-1.7b-zero2-offload": ("qwen3-1.7b", 1, 256, {"zero": 2, "offload": True}),
    "qwen3-1.7b-zero2-offload-1-thread": ("qwen3-1.7b", 1, 256, {"zero": 2, "offload": True, "threads": 1}),
}
HOOKS = {"PartitionedParameterCoordinator": "fetch_sub_module release_sub_module trace_prologue reset_step",
         "DeepSpeedZeroOptimizer_Stage3": "reduce_ready_partitions_and_remove_grads unscale_and_clip_grads get_grad_norm_direct _prepare_sub_group _optimizer_step _reassign_or_swap_out_partitioned_parameters "
                                          "_release_sub_group _post_step _partition_all_parameters independent_gradient_partition_epilogue partition_grads",
         "DeepSpeedZeroOptimizer": "reduce_ready_partitions_and_remove_grads scaled_global_norm _optimizer_step unscale_and_clip_grads step independent_gradient_partition_epilogue"}


class Mlp(nn.Module):
    def __init__(self, wide, inner):
        super().__init__()
        self.gate, self.up, self.down = nn.Linear(wide, inner, bias=False), nn.Linear(wide, inner, bias=False), nn.Linear(inner, wide, bias=False)

    def forward(self, x):
        return self.down(nn.functional.silu(self.gate(x)) * self.up(x))


class Experts(nn.Module):
    """One module for each expert and a loop over them; every expert gets as much as any other."""

    def __init__(self, wide, inner, experts, chosen=8):
        super().__init__()
        self.router = nn.Linear(wide, experts, bias=False)
        self.each = nn.ModuleList(Mlp(wide, inner) for _ in range(experts))
        self.chosen = chosen

    def forward(self, x):
        tokens = x.flatten(0, 1)
        weights = self.router(tokens).softmax(-1)[:, :self.chosen].to(x.dtype)
        picks = torch.arange(tokens.shape[0] * self.chosen, device=x.device).view(-1, self.chosen) % len(self.each)
        out = torch.zeros_like(tokens)
        for number, expert in enumerate(self.each):
            which, slot = torch.where(picks == number)
            out.index_add_(0, which, expert(tokens[which]) * weights[which, slot, None])
        return out.view_as(x)


def made(which, changes):
    family, shape = MODELS[which]
    config = getattr(transformers, family + "Config")(**shape, use_cache=False, pad_token_id=0, bos_token_id=1, eos_token_id=2)
    config._attn_implementation = "eager" if family == "Mpt" else "sdpa"
    torch.set_default_dtype(torch.float32 if changes.get("fsdp") else torch.bfloat16)
    with torch.device("cuda"):
        model = getattr(transformers, family + "ForCausalLM")(config)
        if "experts" in changes:
            for layer in model.model.layers:
                layer.mlp = Experts(config.hidden_size, 768, changes["experts"])
    torch.set_default_dtype(torch.float32)
    if "lora" in changes:
        import peft
        model = peft.get_peft_model(model, peft.LoraConfig(r=changes["lora"], target_modules="all-linear", task_type="CAUSAL_LM"),
                                    autocast_adapter_dtype=bool(changes.get("autocast")))
    model.train()
    if changes.get("checkpoints"):
        model.enable_input_require_grads()  # else nothing of a reentrant layer has a gradient
        model.gradient_checkpointing_enable({"use_reentrant": bool(changes.get("reentrant"))})
    return model


def trained_of(model):
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def made_optimizer(model, changes):
    if changes.get("bits"):
        import torchao.optim
        return {8: torchao.optim.AdamW8bit, 4: torchao.optim.AdamW4bit}[changes["bits"]](trained_of(model), lr=1e-5)
    return torch.optim.AdamW(trained_of(model), lr=1e-5, **({} if changes.get("offload") else {"fused": True}))


def under_zero(model, changes):
    """The settings that transformers fills in for "auto"."""
    import deepspeed
    wide = model.config.hidden_size
    ranks = distributed.get_world_size()
    if changes.get("leaf"):
        deepspeed.utils.set_z3_leaf_modules(model, [Experts])
    keys = {"stage": changes["zero"], "overlap_comm": True, "contiguous_gradients": True, "reduce_bucket_size": changes.get("bucket", wide * wide)}
    if changes["zero"] == 3:
        keys |= {"stage3_prefetch_bucket_size": changes.get("bucket", int(0.9 * wide * wide)), "stage3_param_persistence_threshold": 10**12 if changes.get("kept") else 10 * wide}
    if "reuse" in changes:
        keys |= {"stage3_max_reuse_distance": changes["reuse"], "stage3_max_live_parameters": changes["reuse"]}
    if "sub_group" in changes:
        keys |= {"sub_group_size": changes["sub_group"]}
    if "parameters" in changes:
        keys |= {"offload_param": {"device": changes["parameters"], "pin_memory": True}}
    if changes.get("offload"):
        keys |= {"offload_optimizer": {"device": "cpu", "pin_memory": True}}
    if changes.get("wrapped"):  # as zero.Init does it, in which transformers makes its models
        nn.functional.linear = deepspeed.runtime.zero.linear.zero3_linear_wrap
    update = made_optimizer(model, changes)
    engine, *_ = deepspeed.initialize(model=model, optimizer=update, config={
        "train_batch_size": ranks * changes.get("accumulate", 1), "train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": True}, "zero_optimization": keys, "gradient_clipping": 1.0,
        "zero_allow_untested_optimizer": True, "zero_force_ds_cpu_optimizer": False, "steps_per_print": 10**9})
    return engine


def watched(optimizer, seen):
    """Each call of the functions named above, timed on the host, with what it calls."""
    parts = [optimizer, getattr(getattr(optimizer, "parameter_offload", None), "param_coordinator", None)]
    if getattr(optimizer, "parameter_offload", None) is not None:
        parts[1] = optimizer.parameter_offload.get_param_coordinator()
    for part in parts:
        for name in HOOKS.get(type(part).__name__, "").split():
            inner = getattr(part, name, None)
            if inner is None:
                continue

            def timed(*arguments, inner=inner, name=name, **named):
                begin = time.perf_counter()
                try:
                    return inner(*arguments, **named)
                finally:
                    seen[name][0] += 1
                    seen[name][1] += time.perf_counter() - begin
            setattr(part, name, timed)


def measured(name, steps, hooks):
    which, rows, length, changes = ROWS[name]
    torch.manual_seed(0)
    torch.set_num_threads(changes.get("threads", os.cpu_count()))
    model = made(which, changes)
    numbers, tensors, trained = sum(parameter.numel() for parameter in model.parameters()), len(list(model.parameters())), len(trained_of(model))
    owners = sum(1 for module in model.modules() if any(True for _ in module.parameters(recurse=False)))
    plain = sum(1 for _ in model.modules()) - owners
    software = timing.software()
    if changes.get("zero"):
        engine = under_zero(model, changes)
        software += f", DeepSpeed {sys.modules['deepspeed'].__version__}"
    elif changes.get("fsdp"):
        mesh = distributed.init_device_mesh("cuda", (RANKS,))
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        for layer in model.model.layers:
            fully_shard(layer, mesh=mesh, mp_policy=policy)
        fully_shard(model, mesh=mesh, mp_policy=policy)
    if not changes.get("zero"):
        update = torch.optim.AdamW(trained_of(model), lr=1e-5, fused=True)
    words = torch.randint(3, model.config.vocab_size, (rows, length), device="cuda")
    phases = collections.defaultdict(list)

    def step():
        marks = [time.perf_counter()]

        def mark():
            torch.cuda.synchronize()
            marks.append(time.perf_counter())
        if changes.get("zero"):
            loss = engine(input_ids=words, labels=words).loss
            mark()
            engine.backward(loss)
            mark()
            engine.step()
        else:
            with torch.autocast("cuda", torch.bfloat16, enabled=bool(changes.get("autocast"))):
                loss = model(input_ids=words, labels=words).loss
            mark()
            loss.backward()
            mark()
            nn.utils.clip_grad_norm_(trained_of(model), 1.0)
            update.step()
            update.zero_grad(set_to_none=True)
        mark()
        for phase, begin, end in zip(("forward", "backward", "update"), marks, marks[1:]):
            phases[phase].append(end - begin)

    for _ in range(4):
        step()
    phases.clear()
    for _ in range(changes.get("rounds", 15)):
        step()
    middle = {phase: sorted(times)[len(times) // 2] * 1e3 for phase, times in phases.items()}
    least = {phase: min(times) * 1e3 for phase, times in phases.items()}
    steps.add(id="sharded-" + name, run=began, hardware=timing.gpu_name(), software=software, model=which, numbers=numbers, tensors=tensors, trained=trained, owners=owners, plain=plain, rows=rows, length=length,
              changes=" ".join(f"{key}:{value}" for key, value in changes.items()), step_ms=round(sum(middle.values()), 3), **{f"{phase}_ms": round(value, 3) for phase, value in middle.items()},
              **{f"fastest_{phase}_ms": round(value, 3) for phase, value in least.items()})
    if changes.get("zero"):
        seen = collections.defaultdict(lambda: [0, 0.0])
        watched(engine.optimizer, seen)
        each = []
        for _ in range(changes.get("rounds", 9)):
            seen.clear()
            step()
            each.append(dict(seen))
        for function, (calls, _) in each[-1].items():
            times = sorted(one[function][1] for one in each if function in one)
            hooks.add(id="sharded-" + name, run=began, function=function, calls=calls, ms=round(times[len(times) // 2] * 1e3, 3), fastest_ms=round(times[0] * 1e3, 3))
        engine.destroy()


def main():
    folder, *wanted = sys.argv[1:] or sys.exit(__doc__)
    distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=RANKS)
    steps = timing.Table(folder, "sharded.csv", "id run hardware software model numbers tensors trained owners plain rows length changes step_ms forward_ms backward_ms update_ms fastest_forward_ms fastest_backward_ms fastest_update_ms".split())
    hooks = timing.Table(folder, "hooks.csv", "id run function calls ms fastest_ms".split())
    timing.sections(wanted, {name: functools.partial(measured, name, steps, hooks) for name in ROWS})


if __name__ == "__main__":
    main()
