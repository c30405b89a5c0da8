#!/usr/bin/env bash
GPUS_PER_NODE=8
NNODES=${SLURM_NNODES:-2}
MODEL_ARGS=(
  --num-layers 16
  --hidden-size 2048
  --ffn-hidden-size 8192
  --num-attention-heads 32
  --group-query-attention
  --num-query-groups 8
  --kv-channels 64
  --max-position-embeddings 8192
  --position-embedding-type rope
  --normalization RMSNorm
  --swiglu
  --disable-bias-linear
  --vocab-size 128256
)
TRAINING_ARGS="--seq-length 4096 --micro-batch-size 2 --global-batch-size 128 --train-iters 500 --bf16 \
  --recompute-granularity selective --recompute-modules core_attn layernorm"
torchrun --nproc_per_node $GPUS_PER_NODE --nnodes $NNODES pretrain_gpt.py "${MODEL_ARGS[@]}" $TRAINING_ARGS \
  --tensor-model-parallel-size 2 --sequence-parallel --use-distributed-optimizer --overlap-grad-reduce \
  --save $(date +%s) --save-interval 100 --fp8-format hybrid --lr 3e-4
