# Cases of scripts that start trainings. How a case is written stands at the top of cases.cmake.
if(NOT COMMAND cli)
  return()
endif()
set(folder @ROOT@/tests/cli/scripts)
set(openrlhf ${folder}/pair.openrlhf.sh)

# ---- OpenRLHF ----
cli("an OpenRLHF script is run as it is" ARGS run --full ${openrlhf} --samples 0 --faster 0
  OUTPUT "\nmodel +llama-3.2-1b for meta-llama/Llama-3.2-1B-Instruct .*\nmachine +2 of h100-8 +the launcher says 2 GPUs .*step time .*: the script starts 2 trainings: this is openrlhf.cli.train_sft of line 19; --launch N takes another: openrlhf.cli.train_dpo of line 44\n.*zero_stage: 2moe is stage 2 with a moe block, which models of Hugging Face do not heed: .*zpg works with stage 3 only; DeepSpeed does not look at it below\n")
cli("keys of an OpenRLHF script become keys of a scenario" ARGS import ${openrlhf}
  OUTPUT "\nmodel: \"llama-3.2-1b\" +# pretrain, line 20: meta-llama/Llama-3.2-1B-Instruct\n.*\nstack: openrlhf-liger +# use_liger_kernel, line 28: .*\n  sequence: 2048 +# max_len, line 33\n  micro_batch: 4 +# micro_train_batch_size, line 31\n  global_batch: 32 +# train_batch_size, line 30\n.*\n  zero: 2 +# zero_stage, line 24\n.*\n    overlap_comm: true +# overlap_comm, line 39\n  optimizer: adamw_4bit +# optimizer, line 29: adamw_torchao_4bit\n  gradient_dtype: fp32 +# grad_accum_dtype, line 32\n  checkpointing: full +# gradient_checkpointing, line 26\n  attention: flash +# attn_implementation, line 27\n  cross_entropy: logits ")
cli("OpenRLHF's flag for the reentrant way" ARGS import @WORK@/own.openrlhf.sh
  SHELL "sed 's|--gradient_checkpointing |--gradient_checkpointing --gradient_checkpointing_use_reentrant |' ${openrlhf} >@WORK@/own.openrlhf.sh; \"$@\""
  OUTPUT "\n  checkpointing: full +# [^\n]*\n  reentrant: true +# gradient_checkpointing_use_reentrant, line 26\n")
cli("every argument of a script is in one of four lists" ARGS import ${openrlhf} --keys
  OUTPUT "^used +line\n.*packing_samples +34 .*\nchanges neither time nor memory +line\n.*\nwandb_run_name +40 +not known without a run")
cli("another training of a script" ARGS show ${openrlhf} --launch 2
  OUTPUT "method +dpo .*sequence +1024 +[^\n]*pair.openrlhf.sh:55\n")
cli("a model that a launch before writes" ARGS run --full ${openrlhf} --launch 2 --samples 0 --faster 0
  OUTPUT "\nmodel +llama-3.2-1b for /data/outputs/small-sft +the launch of line 19 writes it, from meta-llama/Llama-3.2-1B-Instruct .*optimizer: adamw_torchao_8bit is replaced: with its states on the host")
cli("a script of OpenRLHF's reinforcement is run as it is" ARGS run --full ${folder}/ppo.openrlhf.sh --samples 0 --faster 0
  OUTPUT "\nmodel +llama-3.2-1b for ~/models/Llama-3.2-1B-Instruct .*\nmachine +4 of h100-8 +the models' GPUs and the engines' make so many .*4 learners, 2 engines of 2 GPUs, in turn on the same GPUs; 64 prompts x 1 responses a step\n.*reward.model_name_or_path: ~/models/reward-3b is counted as large as the policy\n")
cli("keys of OpenRLHF's reinforcement become keys of a scenario" ARGS import ${folder}/ppo.openrlhf.sh
  OUTPUT "\nrecipe: openrlhf-ray .*\n  critic: true .*\n  reward_model: true .*\n  park_learners: true +# ds.enable_sleep.*\n  max_prompt_token_length: 256\n  response_length: 768 .*\n  pack_length: 4096 +# train.max_tokens_per_gpu.*\n  batching: shares .*\n  num_mini_batches: 2 +# train.batch_size, line 13: 32 of 64\n")
function(openrlhf_edited name edit output)
  cli("${name}" ARGS import @WORK@/own.sh SHELL "sed -e '${edit}' ${folder}/ppo.openrlhf.sh >@WORK@/own.sh; \"$@\"" OUTPUT "${output}")
endfunction()
openrlhf_edited("OpenRLHF's models on GPUs of their own" "/colocate_all/d" "the 12 that.*\n  layout: separate .*\n  learner_gpus: 4 .*\n  vllm_num_engines: 2 ")
openrlhf_edited("OpenRLHF without a critic" "s/kl.init_coef 0.01/advantage.estimator group_norm/"
  "\n  critic: false .*")
cli("packs of responses may be longer than the model's positions" ARGS run ${folder}/ppo.openrlhf.sh --model llama-3-8b --cluster h100-8
  --set job.pack_length=16384 --samples 0 --faster 0 SHELL "\"$@\" 2>&1 | grep -cE 'stretched|^stepsim:'; true" OUTPUT "^0\n$")
cli("a launch that a script does not have" ARGS run ${openrlhf} --launch 3 CODE 2
  ERROR "--launch 3: the script starts 2 trainings: openrlhf.cli.train_sft of line 19, openrlhf.cli.train_dpo of line 44")
cli("a launch of a file that is no script" ARGS run @ROOT@/tests/cli/tiny.yaml --launch 2 CODE 2
  ERROR "--launch: @ROOT@/tests/cli/tiny.yaml is no script")
cli("a variable of a script is set" ARGS show ${openrlhf} --set MBS=2 OUTPUT "micro_batch +2 ")
cli("an argument of a script is set" ARGS show ${openrlhf} --set max_len=512 OUTPUT "sequence +512 ")
cli("a sweep over a variable of a script" ARGS sweep ${openrlhf} --vary MBS=1,2 --csv
  SHELL "\"$@\" | cut -d, -f1 | tail -n 2 | tr '\\n' ' '" OUTPUT "^1 2 $")
cli("the launcher's GPUs stay on another machine" ARGS show ${openrlhf} --cluster mi300x-8 OUTPUT "gpus_per_node +2 ")
cli("more GPUs than the machine has" ARGS run ${openrlhf} --set NUM_GPUS=4 --cluster rtxpro6000-2 CODE 2
  ERROR "the launcher asks for 4 GPUs of a node, and rtxpro6000-2 has 2: name a machine that has them, or say --gpus 2")
cli("a card takes as many GPUs as the launcher starts" ARGS show ${openrlhf} --set NUM_GPUS=4 --cluster "RTX 4090" OUTPUT "gpus_per_node +4 ")
cli("all GPUs are said" ARGS show ${openrlhf} --cluster h100 --gpus 2 OUTPUT "cluster +1 x h100-2, 2 ranks")
cli("a machine that is not modelled" ARGS run ${openrlhf} --cluster gaudi2 CODE 2 ERROR_MATCHES "--cluster: \"gaudi2\": Gaudi is not modelled; a GPU of the same memory says whether it fits")
cli("an imported script runs as its source does" ARGS import ${openrlhf} --cluster mi300x-8 -o @WORK@/out/script.yaml
  SHELL "\"$@\" >/dev/null; { \"$1\" run \"$3\" --cluster mi300x-8 --samples 0 --json; \"$1\" run @WORK@/out/script.yaml --samples 0 --json; } | grep -oE '\"(step_time_s|peak_memory_bytes)\": [0-9.]+' | sort | uniq -c | grep -c ' 2 '"
  OUTPUT "^2\n$")

# ---- what is wrong ----
# A copy with one line changed.
function(script_refused name line error)
  cli("script with ${name}" ARGS memory @WORK@/own.sh CODE 2
    SHELL "sed 's|${line}|' ${openrlhf} >@WORK@/own.sh; \"$@\"" ERROR "@WORK@/own.sh:${error}")
endfunction()
script_refused("a variable that nothing sets" "^MBS=4|X=4"
  "31: micro_train_batch_size: depends on MBS, which nothing sets: --set MBS=... says it")
script_refused("a command that decides an argument" "^MBS=4|MBS=$(nproc)"
  "31: micro_train_batch_size: depends on $(nproc) of line 10, which is not run: --set MBS=... says it")
script_refused("an if that decides an argument" "^MBS=4|if [ -f x ]; then MBS=4; fi"
  "31: micro_train_batch_size: depends on the `if` of line 10: --set MBS=... says it")
script_refused("a misspelt argument" "--max_len 2048|--max_length 2048"
  "33: max_length: unknown key (did you mean \"max_len\"?)")
script_refused("a stage that there is not" "2moe|4" "24: zero_stage: expected 0, 1, 2, 2moe or 3, found \"4\"")
script_refused("an unknown optimizer" "torchao_4bit|torchao_5bit"
  "29: optimizer: OpenRLHF has no optimizer \"adamw_torchao_5bit\" (did you mean \"adamw_torchao_8bit\"?)")
script_refused("a model that is nowhere" "meta-llama/Llama-3.2-1B-Instruct|nowhere/own"
  "20: pretrain: \"nowhere/own\" is neither in the catalogue, nor in the local cache of Hugging Face, nor a folder here: name one with --model: `stepsim list models` names them, and the path of a config.json will do")
script_refused("a quote that is never closed" "rows.jsonl\"|rows.jsonl" "60: a \" is never closed")

function(other_script name text error)
  cli("script with ${name}" ARGS run @WORK@/own.sh CODE 2 SHELL "printf '${text}' >@WORK@/own.sh; \"$@\""
    ERROR "@WORK@/own.sh${error}")
endfunction()
other_script("no launch" "#!/bin/bash\\necho train\\n" ": is a shell script that starts no training; it was read, not run")
other_script("another program" "A=1\\npython serve.py --port 1\\n"
  ":2: the script starts serve.py of line 2, which is no training of axolotl, openrlhf, autotrain, slime, megatron, verl, verl-sft, nemo-rl, open-instruct-tuning, open-instruct, llm-foundry, torchtune, nanotron, litgpt, torchtitan, llama-factory, llama-factory-v1, ms-swift, megatron-swift or trl")
other_script("a training that is not read" "python -m openrlhf.cli.train_kd --pretrain x\\n"
  ":1: openrlhf.cli.train_kd is not read yet; expected openrlhf.cli.train_ppo_ray, openrlhf.cli.train_sft, openrlhf.cli.train_dpo or openrlhf.cli.train_rm")

# ---- scripts that name a file ----
cli("a script that starts a file of Axolotl" ARGS run --full @WORK@/own.sh --samples 0 --faster 0
  SHELL "cp @ROOT@/tests/cli/axolotl/* @WORK@; printf 'accelerate launch -m axolotl.cli.train small-sft.8xMI300.yaml --micro_batch_size 1\\n' >@WORK@/own.sh; \"$@\""
  OUTPUT "machine +mi300x-8 +the file is called 8xMI300 .*step time ")
cli("a script that starts a file that is not there" ARGS run @WORK@/own.sh CODE 2
  SHELL "printf 'axolotl train none.yaml\\n' >@WORK@/own.sh; \"$@\""
  ERROR "@WORK@/own.sh:1: no file @WORK@/none.yaml, which the training is read from")

# ---- verl's supervised training ----
set(verl_sft ${folder}/sft.verl.sh)
cli("a script of verl's supervised training that wants words" ARGS run --full ${verl_sft} --set gpus=4 --samples 0 --faster 0
  OUTPUT "machine +4 of h100-8 .*data 2 x Ulysses 2.*step time .*trainer.save_freq .checkpoints come[^\n]*: not modelled")
cli("its keys become keys of a scenario" ARGS import ${verl_sft} --set gpus=4
  OUTPUT "line 2 ends the script with a failure: read on .*\nmodel: \"qwen2.5-0.5b\" .*\n  micro_batch: 4 +# data.micro_batch_size_per_gpu, line 12\n  epochs: 2 .*\n  global_batch: 96 .*\n    modules: \\[q_proj, v_proj\\] +# model.target_modules, line 16\n.*\n    ulysses: 2 +# ulysses_sequence_parallel_size, line 20\n")
cli("settings of its engines" ARGS import @WORK@/own.sh
  SHELL "printf 'torchrun --nproc_per_node 8 -m verl.trainer.sft_trainer model.path=Qwen/Qwen3-8B engine=megatron engine.tensor_model_parallel_size=2 engine.pipeline_model_parallel_size=2 data.train_batch_size=64 data.max_length=4096 data.max_token_len_per_gpu=16384' >@WORK@/own.sh; \"$@\""
  OUTPUT "stack: megatron .*\n  micro_batch: 4 +# [^\n]*full rows in 16384 tokens.*\n  zero: 1 +# engine, line 1\n.*pipeline_parallel:\n    size: 2 ")
cli("degrees that nobody has" ARGS import @WORK@/own.sh CODE 2
  SHELL "printf 'torchrun --nproc_per_node 8 -m verl.trainer.sft_trainer model.path=Qwen/Qwen3-8B engine=megatron data.train_batch_size=16777216 engine.tensor_model_parallel_size=65536 engine.pipeline_model_parallel_size=65536 engine.context_parallel_size=65536' >@WORK@/own.sh; \"$@\""
  ERROR_MATCHES "engine.tensor_model_parallel_size: ")
cli("an unknown key of verl's supervised training" ARGS run ${verl_sft} --set gpus=4 --set data.max_lenght=4 CODE 2
  ERROR "--set: data.max_lenght: unknown key (did you mean \"max_length\"?)")

# ---- TRL, Accelerate, LLaMA-Factory ----
set(trl ${folder}/sft.trl.py)
cli("a Python file of TRL is run as it is" ARGS run --full ${trl} --samples 0 --faster 0
  OUTPUT "\nmachine +2 of h100-8 +[^\n]*two.fsdp.yaml says num_processes: 2 .*step time .*neftune_noise_alpha .noise on[^\n]*: not modelled; the result is without it\n")
cli("keywords of constructors become keys of a scenario" ARGS import ${trl}
  OUTPUT "\nmodel: \"llama-3.2-1b\" +# model_name_or_path, line 24: .*\nstack: accelerate-fsdp2 .*\n  sequence: 2048 +# max_length, line 34\n.*\n  micro_batch: 4 +# per_device_train_batch_size, line 30\n  gradient_accumulation: 4 +# gradient_accumulation_steps, line 31\n.*\n  zero: fsdp .*\n    version: 2 .*\n    reshard_after_forward: false .*\n  optimizer: adamw_4bit +# optim, line 38: adamw_torch_4bit\n  checkpointing: full +# gradient_checkpointing, line 33\n  attention: flash ")
cli("a name of a Python file is set" ARGS show ${trl} --set PER_DEVICE_BATCH_SIZE=8 OUTPUT "micro_batch +8 .*gradient_accumulation +2 ")
cli("a keyword of a Python file is set" ARGS show ${trl} --set max_length=512 OUTPUT "sequence +512 ")
cli("a sweep over a name of a Python file" ARGS sweep ${trl} --vary MAX_LEN=512,1024 --csv
  SHELL "\"$@\" | cut -d, -f1 | tail -n 2 | tr '\\n' ' '" OUTPUT "^512 1024 $")
cli("arguments of a program of any name, with a file of Accelerate" ARGS import ${folder}/trl.sh
  OUTPUT "\n  method: dpo\n.*\n  micro_batch: 2 +# per_device_train_batch_size, line 5\n.*\n  zero: 3 +# --config_file: [^\n]*two.deepspeed.yaml: deepspeed_config.zero_stage\n.*\n    optimizer: cpu ")
cli("a Python file that a script writes" ARGS import ${folder}/trl.sh --launch 2
  OUTPUT "\n  method: sft\n  sequence: 512 +# max_length, line 16\n")
cli("a file of arguments with one of Accelerate" ARGS import ${folder}/dpo.arguments.json --accelerate ${folder}/two.deepspeed.yaml
  OUTPUT "\nstack: trl-liger .*\n  method: dpo\n.*\n  zero: 3 .*\n  lora:\n    rank: 32 +# lora_r, line 11\n    targets: linear ")
function(given_file name program output)
  cli("${name}" ARGS import @WORK@/own.sh
    SHELL "mkdir -p @WORK@/ways @WORK@/recipes/orpo; cp ${folder}/two.fsdp.yaml @WORK@/ways; printf 'model_name_or_path: meta-llama/Llama-3.2-1B-Instruct\\noutput_dir: x\\nbeta: 0.1\\nmax_length: 1024\\n' >@WORK@/recipes/orpo/full.yaml; cp ${folder}/sft.factory.yaml @WORK@/recipes; printf '${program}' >@WORK@/own.sh; \"$@\""
    OUTPUT "${output}")
endfunction()
given_file("a script of TRL with a file of arguments" "accelerate launch --config_file ways/two.fsdp.yaml scripts/dpo.py --config recipes/orpo/full.yaml --max_length 512"
  "\n  method: dpo\n  reference_model: true\n  sequence: 512 +# max_length.*\n  zero: fsdp ")
given_file("a script of no method with a file in a folder of one" "accelerate launch train.py --config=recipes/orpo/full.yaml"
  "\n  method: dpo +# beta, line 3\n  reference_model: false ")
given_file("LLaMA-Factory's own script with a file" "torchrun --nproc_per_node 8 src/train.py recipes/sft.factory.yaml"
  "\n  method: sft +# stage, line 6\n")
cli("unsloth's engine is vLLM, and its keys are known" ARGS import @WORK@/own.py
  SHELL "printf 'from unsloth import FastVisionModel\\nfrom trl import GRPOTrainer, GRPOConfig\\nmodel, processor = FastVisionModel.from_pretrained(model_name=\"meta-llama/Llama-3.2-1B-Instruct\", load_in_16bit=True, fast_inference=True, gpu_memory_utilization=0.6)\\nmodel = FastVisionModel.get_peft_model(model, finetune_vision_layers=False, r=8)\\ntrainer = GRPOTrainer(model=model, args=GRPOConfig(num_generations=4, per_device_train_batch_size=4, embedding_learning_rate=1e-5))\\n' >@WORK@/own.py; \"$@\""
  OUTPUT "\n  method: grpo\n  layout: colocated .*\n  vllm_gpu_memory_utilization: 0.6 +# gpu_memory_utilization, line 3\n")
function(accelerate_bits name said output)
  cli("${name}" ARGS import ${folder}/dpo.arguments.json --accelerate @WORK@/own.yaml
    SHELL "sed 's|^mixed_precision.*|${said}|' ${folder}/two.fsdp.yaml >@WORK@/own.yaml; \"$@\"" OUTPUT "${output}")
endfunction()
accelerate_bits("8 bits of a file of Accelerate" "mixed_precision: fp8" "\n  precision: fp8-tensorwise +# --config_file: auto\n")
accelerate_bits("8 bits of Accelerate by Transformer Engine" "mixed_precision: fp8\\nfp8_config: {backend: TE}"
  "\n  precision: fp8-delayed +# --config_file: te\n")
cli("8 bits of Accelerate by what is not known" ARGS import ${folder}/dpo.arguments.json --accelerate @WORK@/own.yaml CODE 2
  SHELL "sed 's|^mixed_precision.*|mixed_precision: fp8\\nfp8_config: {backend: MSAMP}|' ${folder}/two.fsdp.yaml >@WORK@/own.yaml; \"$@\""
  ERROR "${folder}/dpo.arguments.json:1: --config_file: @WORK@/own.yaml: fp8_config.backend: expected auto, ao, torchao or te, found \"msamp\"")
cli("8 bits of a LLaMA-Factory file" ARGS import @WORK@/own.yaml
  SHELL "sed 's|^deepspeed.*|fp8: true\\nfp8_backend: te|' ${folder}/sft.factory.yaml >@WORK@/own.yaml; \"$@\""
  OUTPUT "\n  precision: fp8-delayed +# fp8_backend, line 10: te\n")
cli("LLaMA-Factory's key for the reentrant way" ARGS import @WORK@/own.yaml
  SHELL "sed 's|^bf16.*|bf16: true\\nuse_reentrant_gc: false|' ${folder}/sft.factory.yaml >@WORK@/own.yaml; \"$@\""
  OUTPUT "\n  reentrant: false +# use_reentrant_gc, line 28\n")
cli("a gather in 8 bits without FSDP" ARGS import @WORK@/own.yaml
  SHELL "sed 's|^deepspeed.*|fp8: true\\nfp8_enable_fsdp_float8_all_gather: true|' ${folder}/sft.factory.yaml >@WORK@/own.yaml; \"$@\""
  OUTPUT "fp8_enable_fsdp_float8_all_gather does nothing here: only version 2 of FSDP gathers 8 bits")
cli("a LLaMA-Factory file is run as it is" ARGS run --full ${folder}/sft.factory.yaml --samples 0 --faster 0
  OUTPUT "LLaMA-Factory with Liger kernels.*step time .*llama-factory-deepspeed/ds_z3_config.json")
cli("keys of a LLaMA-Factory file become keys of a scenario" ARGS import ${folder}/sft.factory.yaml
  OUTPUT "\n  method: sft +# stage, line 6\n  sequence: 2048 +# cutoff_len, line 14\n  packing: true +# packing, line 15\n  micro_batch: 2 .*\n  attention: flash +# flash_attn, line 17\n  cross_entropy: fused +# enable_liger_kernel, line 18\n")

set(second ${folder}/dpo.factory-v1.yaml)
cli("a file of LLaMA-Factory's second trainer is run as it is" ARGS run --full ${second} --cluster h100-8 --samples 0 --faster 0
  OUTPUT "step time .*batching_strategy.*, save_steps.*: not modelled; ")
cli("its blocks become keys of a scenario" ARGS import ${second} --cluster h100-8
  OUTPUT "\nstack: accelerate-fsdp2 .*\n  method: dpo\n.*\n  sequence: 4096 +# cutoff_len, line 15\n.*\n  zero: fsdp +# dist_config.name, line 8\n.*\n    reshard_after_forward: false .*\n    rank: 16 +# peft_config.r, line 5\n.*\n    modules: \\[q_proj, v_proj\\] .*\n    quantised: nf4 .*\n    ulysses: 2 +# cp_size, line 19\n")
cli("a sharding that its second trainer has not" ARGS memory @WORK@/own.yaml CODE 2
  SHELL "sed 's|name: fsdp2|name: fsdp3|' ${second} >@WORK@/own.yaml; \"$@\""
  ERROR "@WORK@/own.yaml:8: dist_config.name: expected fsdp2, deepspeed or fsdpturbo, found \"fsdp3\" (did you mean \"fsdp2\"?)")

function(copy_refused what file name line error)
  cli("${what}" ARGS memory @WORK@/${name} CODE 2
    SHELL "cp ${folder}/* @WORK@; sed 's|${line}|' ${folder}/${file} >@WORK@/${name}; \"$@\"" ERROR "@WORK@/${name}${error}")
endfunction()
copy_refused("a Python file with a value that only a run knows" sft.trl.py own.py "MAX_LEN = 2048|MAX_LEN = longest()"
  ":34: max_length: depends on longest() of line 11, which is not run: --set MAX_LEN=... says it")
copy_refused("a Python file without a trainer" sft.trl.py own.py "SFTTrainer(|train("
  ": is a Python file that calls no trainer of transformers or TRL, and has no loop of its own that trains; it was read, not run")
copy_refused("a Python file with a bracket that is never closed" sft.trl.py own.py "return PER_DEVICE_BATCH_SIZE, steps|return (PER_DEVICE_BATCH_SIZE, steps"
  ":18: a bracket that begins here is never closed")
copy_refused("a method of TRL that is not read" trl.sh own.sh "dpo_of_pairs.py|ppo.py"
  ":9: ppo.py is not read yet; expected a training by sft, dpo, kto, orpo, cpo, grpo, rloo or of a reward model (reward, prm)")
copy_refused("a stage of LLaMA-Factory that is not read" sft.factory.yaml own.yaml "stage: sft|stage: ppo"
  ":6: stage: ppo is not read yet; expected pt, sft, rm, dpo or kto")
copy_refused("a DeepSpeed file of LLaMA-Factory that is not there" sft.factory.yaml own.yaml "ds_z3_config|ds_z4_config"
  ":9: deepspeed: no file @WORK@/ds_z4_config.json or ds_z4_config.json or @WORK@/deepspeed_configs/ds_z4_config.json, and ds_z4_config.json is none of those that LLaMA-Factory comes with: ds_z0_config.json, ds_z2_config.json, ds_z2_offload_config.json, ds_z3_config.json, ds_z3_offload_config.json")
copy_refused("a misspelt key of LLaMA-Factory" sft.factory.yaml own.yaml "cutoff_len|cutof_len"
  ":14: cutof_len: unknown key (did you mean \"cutoff_len\"?)")
