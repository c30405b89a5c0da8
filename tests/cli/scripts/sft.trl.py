"""Supervised training with TRL, in the form that people write it."""

import os
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import SFTConfig, SFTTrainer

MODEL = "meta-llama/Llama-3.2-1B-Instruct"
ACCELERATE_CONFIG = "two.fsdp.yaml"
GLOBAL_BATCH_SIZE = 32
PER_DEVICE_BATCH_SIZE = int(os.environ.get("BATCH", "4"))
MAX_LEN = 2048
OUT = "small-sft"


def batches():
    world_size = int(os.environ.get("WORLD_SIZE", "1"))
    steps = GLOBAL_BATCH_SIZE // (world_size * PER_DEVICE_BATCH_SIZE)
    return PER_DEVICE_BATCH_SIZE, steps


def main():
    per_device, accumulation = batches()
    tokenizer = AutoTokenizer.from_pretrained(MODEL, use_fast=True)
    model = AutoModelForCausalLM.from_pretrained(
        MODEL,
        attn_implementation="flash_attention_2",
    )
    arguments = SFTConfig(
        output_dir=f"/data/outputs/{OUT}",
        per_device_train_batch_size=per_device,
        gradient_accumulation_steps=accumulation,
        num_train_epochs=3,
        gradient_checkpointing=True,
        max_length=MAX_LEN,
        packing=True,
        save_strategy="no",
        neftune_noise_alpha=5,
        optim="adamw_torch_4bit",
        learning_rate=1e-5,
    )
    trainer = SFTTrainer(model=model, args=arguments, processing_class=tokenizer)
    trainer.train()


def launch():
    return ["accelerate", "launch", "--config_file", ACCELERATE_CONFIG, __file__]


if __name__ == "__main__":
    main()
