#!/usr/bin/env python3
"""Steps of Hugging Face models on the GPU here: time, memory, kernels and launches, as a plain training loop runs them.

  python3 measure/steps.py FOLDER [ROW...]

Writes FOLDER/steps.csv, a line for each of the rows below, and FOLDER/kernels-of-steps.csv, the kernels of one step by
kind. Models are made from their configuration with random weights; some are cut to a few layers so that they fit."""

import collections
import copy
import functools
import itertools
import re
import statistics
import sys
import time

import torch
import transformers
from torch.profiler import ProfilerActivity, profile

import timing

began = time.strftime("%H:%M")
LLAMA = dict(vocab_size=128256, rope_theta=500000.0, tie_word_embeddings=False)
QWEN3 = dict(vocab_size=151936, head_dim=128)
MODELS = {
    "qwen3-0.6b": ("Qwen3", QWEN3 | dict(hidden_size=1024, intermediate_size=3072, num_hidden_layers=28, num_attention_heads=16, num_key_value_heads=8, tie_word_embeddings=True)),
    "qwen3-1.7b": ("Qwen3", QWEN3 | dict(hidden_size=2048, intermediate_size=6144, num_hidden_layers=28, num_attention_heads=16, num_key_value_heads=8, tie_word_embeddings=True)),
    "qwen3-4b": ("Qwen3", QWEN3 | dict(hidden_size=2560, intermediate_size=9728, num_hidden_layers=36, num_attention_heads=32, num_key_value_heads=8, tie_word_embeddings=True)),
    "llama3.2-1b": ("Llama", LLAMA | dict(hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32, num_key_value_heads=8, tie_word_embeddings=True)),
    "llama3.1-8b": ("Llama", LLAMA | dict(hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8)),
    "mpt-350m": ("Mpt", dict(d_model=1024, n_heads=16, n_layers=24, expansion_ratio=4, max_seq_len=2048, vocab_size=50368)),
    "mpt-1b": ("Mpt", dict(d_model=2048, n_heads=16, n_layers=24, expansion_ratio=4, max_seq_len=2048, vocab_size=50368)),
    "mpt-7b-8": ("Mpt", dict(d_model=4096, n_heads=32, n_layers=8, expansion_ratio=4, max_seq_len=2048, vocab_size=50432)),
    "olmoe": ("Olmoe", dict(vocab_size=50304, hidden_size=2048, intermediate_size=1024, num_hidden_layers=16, num_attention_heads=16, num_key_value_heads=16, num_experts=64, num_experts_per_tok=8)),
    "qwen3-30b-6": ("Qwen3Moe", QWEN3 | dict(hidden_size=2048, intermediate_size=6144, moe_intermediate_size=768, num_hidden_layers=6, num_attention_heads=32, num_key_value_heads=4, num_experts=128, num_experts_per_tok=8, decoder_sparse_step=1, norm_topk_prob=True)),
    "gpt-oss-4": ("GptOss", dict(vocab_size=201088, hidden_size=2880, intermediate_size=2880, num_hidden_layers=4, num_attention_heads=64, num_key_value_heads=8, head_dim=64, num_local_experts=32, num_experts_per_tok=4)),
    "moonlight-6": ("DeepseekV3", dict(vocab_size=163840, hidden_size=2048, intermediate_size=11264, moe_intermediate_size=1408, num_hidden_layers=6, num_attention_heads=16, num_key_value_heads=16, n_routed_experts=64, num_experts_per_tok=6, n_shared_experts=2, first_k_dense_replace=1, n_group=1, topk_group=1, q_lora_rank=None, kv_lora_rank=512, qk_rope_head_dim=64, qk_nope_head_dim=128, v_head_dim=128)),
    "llama3.3-70b-8": ("Llama", LLAMA | dict(hidden_size=8192, intermediate_size=28672, num_hidden_layers=8, num_attention_heads=64, num_key_value_heads=8)),
    "llama4-scout-2": ("Llama4Text", dict(vocab_size=202048, hidden_size=5120, intermediate_size=8192, intermediate_size_mlp=16384, num_hidden_layers=2, num_attention_heads=40, num_key_value_heads=8, head_dim=128, num_local_experts=16, num_experts_per_tok=1, interleave_moe_layer_step=1)),
    "nemotron-h-8": ("NemotronH", dict(vocab_size=131072, hidden_size=4096, intermediate_size=21504, num_hidden_layers=8, hybrid_override_pattern="M-M-M*-M", num_attention_heads=32, num_key_value_heads=8, head_dim=128, ssm_state_size=128, mamba_num_heads=128, mamba_head_dim=64, n_groups=8)),
}
# model, rows, tokens of a row, and what differs from a plain loop
ROWS = {
    "qwen3-0.6b-4x2048": ("qwen3-0.6b", 4, 2048, {}),
    "qwen3-0.6b-1x512": ("qwen3-0.6b", 1, 512, {}),
    "qwen3-0.6b-8x2048-checkpoints": ("qwen3-0.6b", 8, 2048, {"checkpoints": True}),
    "qwen3-1.7b-4x2048": ("qwen3-1.7b", 4, 2048, {}),
    "qwen3-1.7b-4x2048-checkpoints": ("qwen3-1.7b", 4, 2048, {"checkpoints": True}),
    "qwen3-1.7b-1x512": ("qwen3-1.7b", 1, 512, {}),
    "qwen3-4b-2x4096-checkpoints": ("qwen3-4b", 2, 4096, {"checkpoints": True}),
    "qwen3-4b-1x2048": ("qwen3-4b", 1, 2048, {}),
    "llama3.2-1b-8x2048": ("llama3.2-1b", 8, 2048, {}),
    "llama3.2-1b-2x8192": ("llama3.2-1b", 2, 8192, {}),
    "llama3.2-1b-2x2048-eager": ("llama3.2-1b", 2, 2048, {"attention": "eager"}),
    "llama3.2-1b-4x2048-fp32": ("llama3.2-1b", 4, 2048, {"autocast": True}),
    "llama3.1-8b-2x2048-checkpoints": ("llama3.1-8b", 2, 2048, {"checkpoints": True}),
    "mpt-350m-8x256": ("mpt-350m", 8, 256, {"attention": "eager"}),
    "mpt-350m-4x2048": ("mpt-350m", 4, 2048, {"attention": "eager"}),
    "mpt-1b-8x256": ("mpt-1b", 8, 256, {"attention": "eager"}),
    "mpt-1b-4x2048-checkpoints": ("mpt-1b", 4, 2048, {"checkpoints": True, "attention": "eager"}),
    "mpt-7b-8-8x256": ("mpt-7b-8", 8, 256, {"attention": "eager"}),
    "mpt-7b-8-2x2048": ("mpt-7b-8", 2, 2048, {"attention": "eager"}),
    "olmoe-4x1024-checkpoints": ("olmoe", 4, 1024, {"checkpoints": True}),
    "olmoe-4x1024-checkpoints-loop": ("olmoe", 4, 1024, {"checkpoints": True, "experts": "eager"}),
    "qwen3-30b-6-4x2048": ("qwen3-30b-6", 4, 2048, {}),
    "qwen3-30b-6-4x2048-loop": ("qwen3-30b-6", 4, 2048, {"experts": "eager"}),
    "qwen3-30b-6-1x2048-loop": ("qwen3-30b-6", 1, 2048, {"experts": "eager"}),
    "qwen3-30b-6-8x2048-checkpoints-loop": ("qwen3-30b-6", 8, 2048, {"checkpoints": True, "experts": "eager"}),
    "gpt-oss-4-2x2048": ("gpt-oss-4", 2, 2048, {"attention": "eager"}),
    "gpt-oss-4-2x2048-loop": ("gpt-oss-4", 2, 2048, {"attention": "eager", "experts": "eager"}),
    "moonlight-6-4x2048": ("moonlight-6", 4, 2048, {}),
    "moonlight-6-4x2048-loop": ("moonlight-6", 4, 2048, {"experts": "eager"}),
    "nemotron-h-8-1x2048": ("nemotron-h-8", 1, 2048, {}),
    "qwen3-1.7b-1x512-lora": ("qwen3-1.7b", 1, 512, {"lora": 16}),
    "qwen3-1.7b-4x2048-lora": ("qwen3-1.7b", 4, 2048, {"lora": 16}),
    "qwen3-4b-2x4096-checkpoints-lora": ("qwen3-4b", 2, 4096, {"checkpoints": True, "lora": 16}),
    "llama3.1-8b-2x2048-checkpoints-lora": ("llama3.1-8b", 2, 2048, {"checkpoints": True, "lora": 64}),
    "llama3.1-8b-1x512-lora": ("llama3.1-8b", 1, 512, {"lora": 16}),
    "qwen3-1.7b-1x512-lora-bf16": ("qwen3-1.7b", 1, 512, {"lora": 16, "adapters": "bf16"}),
    "qwen3-1.7b-1x512-qlora": ("qwen3-1.7b", 1, 512, {"lora": 16, "bits": 4}),
    "qwen3-1.7b-1x512-qlora-bf16": ("qwen3-1.7b", 1, 512, {"lora": 16, "bits": 4, "adapters": "bf16"}),
    "llama3.1-8b-1x512-qlora": ("llama3.1-8b", 1, 512, {"lora": 16, "bits": 4}),
    "llama3.1-8b-2x2048-qlora": ("llama3.1-8b", 2, 2048, {"lora": 16, "bits": 4}),
    "llama3.1-8b-2x2048-checkpoints-qlora": ("llama3.1-8b", 2, 2048, {"checkpoints": True, "lora": 64, "bits": 4}),
    "llama3.1-8b-2x2048-checkpoints-qlora-fp32": ("llama3.1-8b", 2, 2048, {"checkpoints": True, "lora": 64, "bits": 4, "prepared": True}),
    "llama3.1-8b-2x2048-checkpoints-lora-fp32": ("llama3.1-8b", 2, 2048, {"checkpoints": True, "lora": 64, "autocast": True}),
    "llama3.1-8b-1x2048-lora-fp32": ("llama3.1-8b", 1, 2048, {"lora": 16, "autocast": True}),
    "llama3.3-70b-8-1x4096-checkpoints-qlora": ("llama3.3-70b-8", 1, 4096, {"checkpoints": True, "lora": 16, "bits": 4}),
    "llama4-scout-2-1x4096-checkpoints-qlora": ("llama4-scout-2", 1, 4096, {"checkpoints": True, "lora": 32, "bits": 4, "separate": True}),
    "llama4-scout-2-2x4096-checkpoints-qlora": ("llama4-scout-2", 2, 4096, {"checkpoints": True, "lora": 32, "bits": 4, "separate": True}),
    "llama3.2-1b-8x2048-adamw8": ("llama3.2-1b", 8, 2048, {"optimizer": "AdamW8bit"}),
    "llama3.2-1b-8x2048-paged8": ("llama3.2-1b", 8, 2048, {"optimizer": "PagedAdamW8bit"}),
    "llama3.2-1b-8x2048-mask": ("llama3.2-1b", 8, 2048, {"mask": True}),
    "llama3.2-1b-2x8192-mask": ("llama3.2-1b", 2, 8192, {"mask": True}),
    "llama3.2-1b-4x2048-dpo": ("llama3.2-1b", 8, 2048, {"dpo": True}),
    "llama3.2-1b-8x2048-lengths": ("llama3.2-1b", 8, 2048, {"mask": True, "mean": 600}),
    "llama3.2-1b-8x2048-lengths-bare": ("llama3.2-1b", 8, 2048, {"mean": 600}),
    "llama3.2-1b-8x2048-lengths-expandable": ("llama3.2-1b", 8, 2048, {"mask": True, "mean": 600, "expandable": True}),
    "qwen3-1.7b-4x4096-checkpoints-lengths": ("qwen3-1.7b", 4, 4096, {"checkpoints": True, "mask": True, "mean": 1200}),
    "llama3.1-8b-4x2048-checkpoints-lora-lengths": ("llama3.1-8b", 4, 2048, {"checkpoints": True, "lora": 16, "mask": True, "mean": 600}),
}
KINDS = [("attention", r"flash|fmha|attention|cudnn_generated"), ("product", r"gemm|cutlass|nvjet|cublas|grouped|splitK"), ("optimizer", r"multi_tensor|adam|lpnorm"),
         ("loss", r"log_?softmax|nll|softmax"), ("rows", r"index|gather|scatter|embedding"), ("sort", r"sort|topk|Radix|scan|unique|histogram"), ("copy", r"Memcpy|Memset|copy"),
         ("sum", r"reduce|norm"), ("element", r"elementwise|Cat")]


def kind_of(kernel):
    return next((kind for kind, pattern in KINDS if re.search(pattern, kernel, re.I)), "other")


class Separate(torch.nn.Module):
    """The experts of Llama 4 as modules of their own, each of which all tokens pass."""

    def __init__(self, config):
        super().__init__()
        from transformers.models.llama4.modeling_llama4 import Llama4TextMLP
        self.each = torch.nn.ModuleList(Llama4TextMLP(config, config.intermediate_size) for _ in range(config.num_local_experts))

    def forward(self, tokens):
        parts = tokens.view(len(self.each), -1, tokens.shape[-1])
        return torch.cat([expert(part) for expert, part in zip(self.each, parts)])


def in_four_bits(model):
    """Every matrix of the layers as bitsandbytes stores it: NF4, its scales in 8 bits."""
    import bitsandbytes as bits
    for module in list(model.model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, torch.nn.Linear) and name != "router":
                packed = bits.nn.Linear4bit(child.in_features, child.out_features, bias=False, compute_dtype=torch.bfloat16, quant_type="nf4", device="meta")
                packed.weight = bits.nn.Params4bit(child.weight.data, requires_grad=False, quant_type="nf4").to("cuda")
                setattr(module, name, packed)
    model.is_loaded_in_4bit = True


def made(name, changes):
    family, shape = MODELS[name]
    config = getattr(transformers, family + "Config")(**shape, use_cache=False, pad_token_id=0, bos_token_id=1, eos_token_id=2)
    config._attn_implementation = changes.get("attention", "sdpa")
    if "experts" in changes:
        config._experts_implementation = changes["experts"]
    torch.set_default_dtype(torch.float32 if changes.get("autocast") else torch.bfloat16)
    with torch.device("cuda"):
        model = getattr(transformers, family.removesuffix("Text") + "ForCausalLM")(config)
        for layer in model.model.layers if changes.get("separate") else []:
            layer.feed_forward.experts = Separate(config)
    torch.set_default_dtype(torch.float32)
    if "bits" in changes:
        in_four_bits(model)
    if "lora" in changes:
        import peft
        if changes.get("prepared"):
            model = peft.prepare_model_for_kbit_training(model, use_gradient_checkpointing=False)
        model = peft.get_peft_model(model, peft.LoraConfig(r=changes["lora"], lora_alpha=16, target_modules="all-linear", exclude_modules=["router"], task_type="CAUSAL_LM"), autocast_adapter_dtype="adapters" not in changes)
        model.enable_input_require_grads()
    model.train()
    if changes.get("checkpoints"):
        model.gradient_checkpointing_enable({"use_reentrant": False})
    return model


def watched(model):
    """How evenly tokens come to experts: for each layer and pass, the experts that got any, and the spread over the mean."""
    seen = []

    config = model.config
    experts = next((getattr(config, key) for key in ("num_local_experts", "num_experts", "n_routed_experts") if getattr(config, key, None)), 0)

    def look(_, arguments):
        counts = torch.bincount(arguments[1].flatten(), minlength=experts).float()
        seen.append(((counts > 0).float().mean(), counts.std(correction=0) / counts.mean()))
    hooks = [module.register_forward_pre_hook(look) for path, module in model.named_modules() if path.endswith(".experts") and not isinstance(module, Separate)]
    return seen, hooks


def batches_of(words, rows, length, changes):
    """Batches without end. With a mask the last row has all tokens and the others end before. With a mean lengths are
    log-normal, and every batch ends with its longest row: of 40 batches each has another fortieth of its distribution."""
    draw = torch.Generator().manual_seed(0)
    spread, batches = 0.8, 40
    order = torch.randperm(batches, generator=draw)
    for at in itertools.count():
        if at == 0 or "mean" in changes:
            lengths = torch.linspace(length / 4, length, rows).long()
            if "mean" in changes:
                below = (order[at % batches] + 0.5) / batches  # what share of batches has a shorter longest row
                parts = torch.cat([torch.ones(1), torch.rand(rows - 1, generator=draw)]) * below ** (1 / rows)
                lengths = (changes["mean"] * torch.exp(spread * torch.special.ndtri(parts) - spread ** 2 / 2)).long().clamp(16, length)
            slots = int(lengths.max()) if "mask" in changes or "mean" in changes else length
            ids = torch.randint(3, words, (rows, slots), generator=draw).cuda()
            batch = dict(input_ids=ids, labels=ids)
            if "mask" in changes:
                batch["attention_mask"] = (torch.arange(slots) < lengths[:, None]).long().cuda()
                batch["labels"] = ids.masked_fill(batch["attention_mask"] == 0, -100)
        yield batch


def preference_loss(model, reference, batch):
    """The loss of DPO on pairs, chosen rows first: two passes over all logits, each row's probabilities at a time."""
    def sums(of):
        logits = of(input_ids=batch["input_ids"]).logits[:, :-1]
        picked = [torch.log_softmax(row, -1).gather(-1, words[1:, None]) for row, words in zip(logits, batch["labels"])]
        return torch.stack(picked).squeeze(-1).sum(-1)
    with torch.no_grad():
        before = sums(reference)
    chosen, rejected = (sums(model) - before).chunk(2)
    return -torch.nn.functional.logsigmoid(0.1 * (chosen - rejected)).mean()


def measured(name, steps, kernels):
    which, rows, length, changes = ROWS[name]
    torch.manual_seed(0)
    if "expandable" in changes:  # in a process of its own
        torch.cuda.memory._set_allocator_settings("expandable_segments:True")
    model = made(which, changes)
    numbers = sum(parameter.numel() for parameter in model.parameters())
    tensors = len(list(model.parameters()))
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if "optimizer" in changes:
        import bitsandbytes
        update = getattr(bitsandbytes.optim, changes["optimizer"])(trained, lr=1e-5)
    else:
        update = torch.optim.AdamW(trained, lr=1e-5, fused=True)
    batches = batches_of(model.config.vocab_size, rows, length, changes)
    loss_of = functools.partial(preference_loss, model, copy.deepcopy(model).eval()) if changes.get("dpo") else lambda batch: model(**batch).loss
    phases = collections.defaultdict(list)

    def step(timed=False):
        marks = [time.perf_counter()]

        def mark():
            if timed:
                torch.cuda.synchronize()
                marks.append(time.perf_counter())
        with torch.autocast("cuda", torch.bfloat16, enabled=bool(changes.get("autocast") or changes.get("lora") and "adapters" not in changes)):
            loss = loss_of(next(batches))
        mark()
        loss.backward()
        mark()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        update.step()
        update.zero_grad(set_to_none=True)
        mark()
        if timed:
            for phase, begin, end in zip(("forward", "backward", "update"), marks, marks[1:]):
                phases[phase].append(end - begin)

    def timed_step():
        torch.cuda.synchronize()
        begin = time.perf_counter()
        step()
        host = time.perf_counter() - begin
        torch.cuda.synchronize()
        return time.perf_counter() - begin, host

    for _ in range(3):
        step()
    routed, hooks = watched(model)
    step()
    for hook in hooks:
        hook.remove()
    busy_experts, spread = (sum(float(part[at]) for part in routed) / len(routed) if routed else "" for at in (0, 1))
    torch.cuda.reset_peak_memory_stats()
    if "mean" in changes:  # the second time that the same batches come, and the first
        first, again = ([timed_step() for _ in range(40)] for _ in range(2))
        taken, (seconds, host), (anew, _) = sorted(again), *(tuple(map(statistics.mean, zip(*each))) for each in (again, first))
    else:
        taken = sorted(timed_step() for _ in range(7))
        (seconds, host), anew = taken[3], ""
    allocated, reserved = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
    free, total = torch.cuda.mem_get_info()
    for _ in range(1 if "mean" in changes else 5):
        step(timed=True)
    phases = {phase: statistics.median(seconds) for phase, seconds in phases.items()}
    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as seen:
        step()
        torch.cuda.synchronize()
    found = collections.defaultdict(lambda: [0, 0.0])
    launches = operators = 0
    for event in seen.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            entry = found[kind_of(event.name)]
            entry[0] += 1
            entry[1] += event.device_time_total if hasattr(event, "device_time_total") else event.cuda_time_total
        elif event.name.startswith("aten::") and (event.cpu_parent is None or not event.cpu_parent.name.startswith("aten::")):
            operators += 1
        elif "LaunchKernel" in event.name:
            launches += 1
    busy = sum(entry[1] for entry in found.values()) / 1e6
    steps.add(id="own-" + name, run=began, hardware=timing.gpu_name(), software=f"{timing.software()}, transformers {transformers.__version__}", model=which, numbers=numbers, tensors=tensors, rows=rows,
              length=length, changes=" ".join(f"{key}:{value}" for key, value in changes.items()), step_ms=round(seconds * 1e3, 3), fastest_ms=round(taken[0][0] * 1e3, 3), host_ms=round(host * 1e3, 3),
              busy_ms=round(busy * 1e3, 3), forward_ms=round(phases["forward"] * 1e3, 3), backward_ms=round(phases["backward"] * 1e3, 3), update_ms=round(phases["update"] * 1e3, 3), kernels=sum(entry[0] for entry in found.values()),
              launches=launches, operators=operators, allocated=allocated, reserved=reserved, device=total - free, busy_experts=busy_experts and round(busy_experts, 3), spread=spread and round(spread, 3), anew_ms=anew and round(anew * 1e3, 3))
    for kind, (count, micros) in sorted(found.items(), key=lambda item: -item[1][1]):
        kernels.add(id="own-" + name, run=began, kind=kind, count=count, ms=round(micros / 1e3, 3))


def main():
    folder, *wanted = sys.argv[1:] or sys.exit(__doc__)
    steps = timing.Table(folder, "steps.csv", "id run hardware software model numbers tensors rows length changes step_ms fastest_ms host_ms busy_ms forward_ms backward_ms update_ms kernels launches operators allocated reserved device busy_experts spread anew_ms".split())
    kernels = timing.Table(folder, "kernels-of-steps.csv", "id run kind count ms".split())
    timing.sections(wanted, {name: functools.partial(measured, name, steps, kernels) for name in ROWS})


main()
