#!/usr/bin/env python3
"""What loops of Hugging Face take around a model: Trainer's own work for a step and a batch, and generate().

  python3 measure/loops.py FOLDER [SECTION...]

Writes FOLDER/loops.csv. Sections: trainer, generate."""

import sys
import time

import torch
import transformers

import timing

folder, *wanted = sys.argv[1:] or sys.exit(__doc__)
figures = timing.Table(folder, "loops.csv", "id hardware what size value unit software notes".split())
gpu, software = timing.gpu_name(), f"{timing.software()}, transformers {transformers.__version__}"


def figure(name, value, unit, *, size="", what="", notes=""):
    figures.add(id=name, hardware=gpu, what=what, size=size, value=f"{value:.4g}", unit=unit, software=software, notes=notes)


def llama(**shape):
    config = transformers.LlamaConfig(**({"vocab_size": 128256, "head_dim": shape["hidden_size"] // shape["num_attention_heads"]} | shape))
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = transformers.LlamaForCausalLM(config)
    torch.set_default_dtype(torch.float32)
    return model


def trainer():
    shape = dict(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2, vocab_size=1000)
    rows = [{"input_ids": torch.randint(1000, (512,)), "labels": torch.randint(1000, (512,))} for _ in range(4096)]
    for row in rows:
        row["attention_mask"] = torch.ones(512, dtype=torch.long)
    for batch, accumulation, every, workers in [(1, 1, 1000, 0), (8, 1, 1000, 0), (8, 4, 1000, 0), (8, 1, 1, 0), (8, 1, 1000, 2)]:
        model = llama(**shape)
        arguments = transformers.TrainingArguments(output_dir="/tmp/trained", per_device_train_batch_size=batch, gradient_accumulation_steps=accumulation, max_steps=60, logging_steps=every, save_strategy="no",
                                                   report_to=[], bf16=True, disable_tqdm=True, dataloader_num_workers=workers)
        moments = []

        class Clock(transformers.TrainerCallback):
            def on_step_end(self, *_, **__):
                torch.cuda.synchronize()
                moments.append(time.perf_counter())
        transformers.Trainer(model=model, args=arguments, train_dataset=rows, callbacks=[Clock()]).train()
        through_trainer = sorted(b - a for a, b in zip(moments[10:], moments[11:]))[24]
        words = torch.randint(1000, (batch, 512), device="cuda")
        mask = torch.ones(batch, 512, dtype=torch.long, device="cuda")
        update = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)

        def plain():
            for _ in range(accumulation):
                with torch.autocast("cuda", torch.bfloat16):
                    loss = model(input_ids=words, attention_mask=mask, labels=words).loss
                loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            update.step()
            update.zero_grad()
            torch.cuda.synchronize()
        own = timing.host_seconds(plain, calls=1, rounds=30)
        figure("trainer-step", through_trainer * 1e3, "ms", size=f"{batch} rows x {accumulation}", what=f"plain loop {own * 1e3:.2f} ms", notes=f"logging every {every} steps, {workers} loader processes")


def generate():
    for name, shape in {"qwen-like-0.6b": dict(hidden_size=1024, intermediate_size=3072, num_hidden_layers=28, num_attention_heads=16, num_key_value_heads=8),
                        "llama-3.1-8b": dict(hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8)}.items():
        model = llama(**shape).eval()
        for batch, prompt in [(1, 128), (16, 128), (16, 2048)]:
            words = torch.randint(1000, (batch, prompt), device="cuda")
            times = {}
            for new in (1, 17, 81):
                for _ in range(2):
                    torch.cuda.synchronize()
                    begin = time.perf_counter()
                    model.generate(words, attention_mask=torch.ones_like(words), max_new_tokens=new, min_new_tokens=new, do_sample=True, pad_token_id=0)
                    torch.cuda.synchronize()
                    times[new] = time.perf_counter() - begin
            figure("generate-token", (times[81] - times[17]) / 64 * 1e3, "ms", size=f"{name}, {batch} rows of {prompt}")
            figure("generate-prompt", times[1] * 1e3, "ms", size=f"{name}, {batch} rows of {prompt}")
        del model
        torch.cuda.empty_cache()


timing.sections(wanted, {"trainer": trainer, "generate": generate})
