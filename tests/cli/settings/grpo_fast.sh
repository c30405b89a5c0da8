#!/bin/bash
export data_mix="one 1.0 two 1.0"
uv run python mason.py --cluster somewhere --num_nodes 2 --gpus 8 --env A=1 \
    -- source configs/setup.sh \&\& python open_instruct/grpo_fast.py \
        --dataset_mixer_list ${data_mix} \
        --model_name_or_path Qwen/Qwen2.5-7B \
        --num_samples_per_prompt_rollout 8 \
        --num_unique_prompts_rollout 16 \
        --max_prompt_token_length 1024 \
        --response_length 2048 \
        --pack_length 4096 \
        --deepspeed_stage 3 \
        --num_learners_per_node 8 \
        --vllm_num_engines 8 \
        --load_ref_policy False \
        --gradient_checkpointing \
        --with_tracking
