#!/bin/bash
# TRL by its own command, and a file that this script writes.
read -r -d '' ARGS <<ARGS_END
--model_name_or_path meta-llama/Llama-3.2-1B-Instruct
--per_device_train_batch_size 2
--max_length 1024
--packing
ARGS_END
accelerate launch --config_file two.deepspeed.yaml --num_processes 2 dpo_of_pairs.py $ARGS --output_dir pairs

cat > own.py <<'EOP'
import os
from trl import SFTTrainer, SFTConfig
trainer = SFTTrainer(
    "meta-llama/Llama-3.2-1B-Instruct",
    args=SFTConfig(max_length=int(os.environ["LENGTH"]), per_device_train_batch_size=1, save_strategy="no"),
)
EOP
export LENGTH=512
python own.py
