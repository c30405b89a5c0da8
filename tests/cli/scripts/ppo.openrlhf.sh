#!/bin/bash
# Reinforcement with a critic as OpenRLHF starts it: all models in turn on the same GPUs.
python3 -m openrlhf.cli.train_ppo_ray \
   --ref.num_nodes 1 --ref.num_gpus_per_node 4 \
   --reward.num_nodes 1 --reward.num_gpus_per_node 4 \
   --critic.num_nodes 1 --critic.num_gpus_per_node 4 \
   --actor.num_nodes 1 --actor.num_gpus_per_node 4 \
   --vllm.num_engines 2 --vllm.tensor_parallel_size 2 \
   --train.colocate_all \
   --vllm.gpu_memory_utilization 0.5 --vllm.enable_sleep --ds.enable_sleep \
   --actor.model_name_or_path $HOME/models/Llama-3.2-1B-Instruct \
   --reward.model_name_or_path $HOME/models/reward-3b \
   --train.batch_size 32 --rollout.batch_size 64 --rollout.n_samples_per_prompt 1 \
   --data.max_len 1024 \
   --ds.zero_stage 3 --ds.packing_samples --actor.gradient_checkpointing_enable \
   --train.dynamic_batch_enable --train.max_tokens_per_gpu 4096 \
   --algo.kl.init_coef 0.01
