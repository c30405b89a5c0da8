# Started as: sft.verl.sh GPUS FOLDER
if [ $# -lt 2 ]; then
  echo "expected GPUS FOLDER"
  exit 2
fi
gpus=$1
shift

torchrun --standalone --nproc_per_node=$gpus -m verl.trainer.fsdp_sft_trainer \
  data.train_files=train.parquet \
  data.train_batch_size=96 \
  data.micro_batch_size_per_gpu=5 \
  data.max_length=2048 \
  model.partial_pretrain=Qwen/Qwen2.5-0.5B-Instruct \
  model.lora_rank=16 \
  'model.target_modules=[q_proj,v_proj]' \
  trainer.total_epochs=2 \
  trainer.save_freq=100 \
  use_remove_padding=true \
  ulysses_sequence_parallel_size=2 $@
