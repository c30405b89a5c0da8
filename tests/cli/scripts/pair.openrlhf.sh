#!/usr/bin/env bash
# Two trainings of OpenRLHF, one after the other, in the form that people write them.
set -eo pipefail

export WANDB_PROJECT="small"
NUM_GPUS=${NUM_GPUS:-2}

BASE=${BASE:-"meta-llama/Llama-3.2-1B-Instruct"}
SFT_OUT=${SFT_OUT:-"small-sft"}
MBS=4

main() {
  run_sft
  run_dpo
}

run_sft() {
  echo "starting on $(hostname)"
  deepspeed --num_gpus $NUM_GPUS --module openrlhf.cli.train_sft \
    --pretrain "$BASE" \
    --dataset "rows.jsonl" \
    --input_key conversations \
    --bf16 \
    --zero_stage 2moe \
    --zpg 2 \
    --gradient_checkpointing \
    --attn_implementation flash_attention_2 \
    --use_liger_kernel \
    --optimizer adamw_torchao_4bit \
    --train_batch_size 32 \
    --micro_train_batch_size $MBS \
    --grad_accum_dtype fp32 \
    --max_len 2048 \
    --packing_samples \
    --max_epochs 3 \
    --learning_rate ${LR:-1e-5} \
    --save_steps -1 \
    --save_path "/data/outputs/$SFT_OUT" \
    --overlap_comm \
    --wandb_run_name "$SFT_OUT-$(date +%s)"
}

run_dpo() {
  deepspeed --num_gpus $NUM_GPUS --module openrlhf.cli.train_dpo \
    --pretrain "/data/outputs/$SFT_OUT" \
    --dataset "pairs.jsonl" \
    --bf16 \
    --zero_stage 3 \
    --adam_offload \
    --optimizer adamw_torchao_8bit \
    --gradient_checkpointing \
    --flash_attn \
    --train_batch_size 16 \
    --micro_train_batch_size 2 \
    --max_len 1024 \
    --beta 0.1
}

if [[ "${BASH_SOURCE[0]}" == "${0}" ]]; then
  main "$@"
fi
