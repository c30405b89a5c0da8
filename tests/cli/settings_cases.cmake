# Cases of files of settings and of files that are written. How a case is written stands at the top of cases.cmake.
if(NOT COMMAND cli)
  return()
endif()
set(folder @ROOT@/tests/cli/settings)

# ---- as they are ----
cli("a TorchTitan file is run as it is" ARGS run --full ${folder}/small.toml --samples 0 --faster 0
  OUTPUT "\nnot in the file +taken +because +change it with\n[- ]+\nmachine +h100-8 +the degrees of \\[parallelism\\] make so many .*llama-3.2-3b on 1 x h100-8.*step time .*small.toml: quantize: model.converters names no converter, so nothing is quantised\n.*small.toml: training.gc_freq .waits of the collector.: not modelled; the result is without it\n")
cli("keys of a TorchTitan file become keys of a scenario" ARGS import ${folder}/small.toml
  OUTPUT "\nmodel: \"llama-3.2-3b\" +# model.flavor, line 6: llama3 3B\n.*\n  micro_batch: 4 +# training.local_batch_size, line 14\n  global_batch: 64 +# training.global_batch_size, line 15\n.*\n  sequence: 4096 +# training.seq_len, line 16\n.*\n  checkpointing: operators +# activation_checkpoint.selective_ac_option, line 27\n.*\n  optimizer_kernels: foreach +# optimizer.implementation, line 11\n")
cli("show of a TorchTitan file" ARGS show ${folder}/small.toml OUTPUT "sequence +4096 +[^\n]*small.toml:16\n")
cli("show of a DeepSpeed file" ARGS show @ROOT@/tests/cli/deepspeed.json --model llama-3.2-1b --cluster h100-8 OUTPUT "\nstrategy\n")
cli("a sweep over a key of a TorchTitan file" ARGS sweep ${folder}/small.toml --vary training.seq_len=1024,2048 --csv
  SHELL "\"$@\" | cut -d, -f1 | tail -n 2 | tr '\\n' ' '" OUTPUT "^1024 2048 $")
cli("a script of Megatron is run as it is" ARGS run --full ${folder}/pretrain.sh --samples 0 --faster 0
  OUTPUT "machine +2 x h100-8 +the launcher says 2 nodes of 8 GPUs .*16 layers of 2048 on 2 x h100-8, Megatron-Core.*step time ")
cli("keys of a script of Megatron become keys of a scenario" ARGS import ${folder}/pretrain.sh
  OUTPUT "\nmodel: {architectures: \\[LlamaForCausalLM\\], .*vocab_size: 128256, tie_word_embeddings: true, .*\n  recompute_modules: \\[core_attn, layernorm\\] +# recompute-modules, line 20\n.*\n    sequence: true +# sequence-parallel, line 22\n.*\n    overlap_grad_reduce: true .*\n    overlap_param_gather: false +# overlap-param-gather is absent\n")
cli("a script of verl is run as it is" ARGS run --full ${folder}/verl.sh --samples 0 --faster 0
  OUTPUT "model +qwen2.5-0.5b for Qwen/Qwen2.5-0.5B-Instruct .*\nlength of responses +a third of the limit on average, .*8 learners, 8 engines of 1 GPU, in turn on the same GPUs; 64 prompts x 4 responses a step\n.*verl.sh: trainer.test_freq .passes over[^\n]*: not modelled; the result is without it\n")
cli("a script of verl whose learners are on the host between layers" ARGS run --full ${folder}/verl.sh --samples 0 --faster 0
  --set actor_rollout_ref.actor.fsdp_config.offload_policy=true OUTPUT "8 learners, 8 engines of 1 GPU.*\nstep time .*training: optimizer .*fits")
cli("a script of verl sends buckets, and gathers no whole model" ARGS show ${folder}/verl.sh
  OUTPUT "\n *sync_protocol +buckets .*\n *gather_whole_model +false .*\n *pack_rows +8 ")
cli("keys of a script of verl become keys of a scenario" ARGS import ${folder}/verl.sh
  OUTPUT "\n  num_mini_batches: 2 +# actor_rollout_ref.actor.ppo_mini_batch_size, line 8: 32 of 64\n  pack_rows: 8 +# actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu, line 9\n.*\n  park_reference: true .*\n  vllm_gpu_memory_utilization: 0.5 +# actor_rollout_ref.rollout.gpu_memory_utilization is absent\n")
cli("a NeMo-RL file becomes a scenario" ARGS import ${folder}/nemo.yaml
  OUTPUT "\n  response_length: 768 +# policy.max_total_sequence_length, line 12\n  pack_length: 2048 .*\n  num_mini_batches: 2 +# policy.train_global_batch_size, line 10: 64 of 128\n.*\n  vllm_gpu_memory_utilization: 0.5 .*\n  checkpointing: full +# policy.dtensor_cfg.activation_checkpointing, line 14\n")
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/nothing.yaml "defaults: []\ngrpo: {num_prompts_per_step: 32}\npolicy: {model_name: Qwen/Qwen2.5-32B}\n")
foreach(command import show)
  cli("${command} of a NeMo-RL file that goes on from nothing" ARGS ${command} ${CMAKE_CURRENT_BINARY_DIR}/nothing.yaml
    OUTPUT "qwen2.5-32b")
endforeach()
cli("supervised training of a NeMo-RL file" ARGS run --full ${folder}/nemo-sft.yaml --samples 0 --faster 0
  OUTPUT "machine +2 x h100-8 +cluster.num_nodes and gpus_per_node say so .*step time .*: policy.dtensor_cfg|step time ")
cli("keys of supervised training become keys of a scenario" ARGS import ${folder}/nemo-sft.yaml --cluster a100-8
  OUTPUT "\n  method: sft\n  sequence: 2048 +# policy.max_total_sequence_length, line 7\n  micro_batch: 2 .*\n  global_batch: 32 .*\n  optimizer_steps: 60 +# sft.max_num_steps, line 1\n")
cli("a NeMo-RL file on another machine has as many nodes" ARGS show ${folder}/nemo-sft.yaml --cluster a100-8 OUTPUT "nodes +2 ")
cli("adapters of a NeMo-RL file" ARGS import @WORK@/own.yaml
  SHELL "sed 's/tensor_parallel_size: 1/lora_cfg: {enabled: true, dim: 16}/' ${folder}/nemo-sft.yaml >@WORK@/own.yaml; \"$@\""
  OUTPUT "\n    rank: 16 +# policy.dtensor_cfg.lora_cfg.dim, line 9\n")
cli("a NeMo-RL file goes on from another" ARGS import @WORK@/own.yaml
  SHELL "cp ${folder}/nemo.yaml @WORK@/base.yaml; printf 'defaults: base.yaml\\ngrpo: {num_prompts_per_step: 64}\\n' >@WORK@/own.yaml; \"$@\""
  OUTPUT "\n  num_unique_prompts_rollout: 64 +# grpo.num_prompts_per_step, line 2\n  num_samples_per_prompt_rollout: 8 ")
cli("a script of open-instruct becomes a scenario" ARGS import ${folder}/grpo_fast.sh
  OUTPUT "machine: 2 x h100-8; .*\n  num_learners_per_node: \\[8, 0\\] +# num_learners_per_node, line 13\n.*\n  async_steps: 8 +# async_steps is absent\n.*\n  load_ref_policy: false +# load_ref_policy, line 15\n.*\n  deepspeed_stage: 3 ")

# ---- products of few bits ----
# Which key of a file says what they are, and what becomes of them.
function(few_bits name file edit output)
  get_filename_component(ending ${file} EXT)
  cli("${name}" ARGS show @WORK@/own${ending} --cluster h100-8
    SHELL "sed -e '${edit}' ${file} >@WORK@/own${ending}; \"$@\"" OUTPUT "${output}")
endfunction()
few_bits("8 bits of a TorchTitan file" ${folder}/small.toml "/^flavor/a converters = [\"quantize.linear.float8\"]"
  "precision +fp8-tensorwise +[^\n]*own.toml:7\n.*narrow_gather +true +[^\n]*own.toml:34\n")
few_bits("8 bits by rows of a TorchTitan file" ${folder}/small.toml
  "/^flavor/a converters = [\"quantize.linear.float8\"]' -e 's/^enable_fsdp.*/recipe_name = \"rowwise\"/" "precision +fp8-rowwise +[^\n]*own.toml:34\n")
few_bits("8 bits of a script of Megatron" ${folder}/pretrain.sh "" "precision +fp8-delayed +[^\n]*own.sh:23\n")
few_bits("a recipe for 8 bits of a script of Megatron" ${folder}/pretrain.sh "s/hybrid/e4m3 --fp8-recipe blockwise/"
  "precision +fp8-blockwise +[^\n]*own.sh:23\n")
few_bits("8 bits of Megatron-Bridge in one word" ${folder}/pretrain.sh "s/fp8-format hybrid/mixed-precision bf16_with_fp8_current_scaling_mixed/"
  "precision +fp8-current +[^\n]*own.sh:23\n")
few_bits("8 bits of a NeMo-RL file" ${folder}/nemo.yaml
  "s/dtensor_cfg:/megatron_cfg: {enabled: true, fp8_cfg: {enabled: true, fp8_recipe: tensorwise}}\\n  dtensor_cfg:/" "precision +fp8-current ")
few_bits("8 bits of an Axolotl file" @ROOT@/tests/cli/axolotl/small-sft.8xMI300.yaml "s/^deepspeed:.*/fp8: true/" "precision +fp8-tensorwise ")

# ---- what is wrong ----
function(settings_refused name file line error)
  get_filename_component(ending ${file} EXT)
  cli("${name}" ARGS memory @WORK@/own${ending} CODE 2
    SHELL "sed 's|${line}|' ${folder}/${file} >@WORK@/own${ending}; \"$@\"" ERROR "@WORK@/own${ending}:${error}")
endfunction()
settings_refused("a recipe for 8 bits that there is not" pretrain.sh "hybrid|hybrid --fp8-recipe delay"
  "23: fp8-recipe: expected delayed, tensorwise, blockwise, mxfp8 or nvfp4, found \"delay\" (did you mean \"delayed\"?)")
settings_refused("a misspelt key of a TorchTitan file" small.toml "^seq_len|seq_length"
  "16: training.seq_length: unknown key (did you mean \"seq_len\"?)")
settings_refused("a flavour that there is not" small.toml "flavor = \"3B\"|flavor = \"4B\""
  "6: model.flavor: llama3 4B is not known (did you mean \"1B\"?): name one with --model: `stepsim list models` names them, and the path of a config.json will do")
settings_refused("an optimizer that TorchTitan does not have" small.toml "\"AdamW\"|\"AdamX\""
  "9: optimizer.name: expected AdamW, adamw_torchao_8bit, adamw_torchao_4bit or Adam, found \"AdamX\" (did you mean \"AdamW\"?)")
settings_refused("a way of checkpointing that TorchTitan does not have" small.toml "\"selective\"|\"selectiv\""
  "26: activation_checkpoint.mode: expected none, selective, full or memory_budget, found \"selectiv\" (did you mean \"selective\"?)")
settings_refused("a text that is no TOML" small.toml "^seq_len.*|seq_len = "
  "16: is no valid TOML: Error while parsing key-value pair: expected value, saw '\\n'")
settings_refused("a script of Megatron without a width" pretrain.sh "  --hidden-size 2048|"
  "1: hidden-size: is missing: it is a width of the model")
settings_refused("a script of Megatron with an unknown way to compute again" pretrain.sh "granularity selective|granularity some"
  "20: recompute-granularity: expected none, selective or full, found \"some\" (did you mean \"none\"?)")
cli("a script of verl with a critic, its model below HOME" ARGS import @WORK@/own.sh
  SHELL "sed -e 's|adv_estimator=grpo|adv_estimator=gae|; s|model.path=[^ ]*|model.path=$HOME/Qwen2.5-0.5B-Instruct|' ${folder}/verl.sh >@WORK@/own.sh; \"$@\""
  OUTPUT "\nmodel: \"qwen2.5-0.5b\" .*\n  critic: true +# algorithm.adv_estimator, line 3\n")
settings_refused("advantages that verl does not have" verl.sh "adv_estimator=grpo|adv_estimator=grppo"
  "3: algorithm.adv_estimator: expected gae, grpo, grpo_passk, grpo_vectorized, rloo, rloo_vectorized, reinforce_plus_plus, reinforce_plus_plus_baseline, opo, gpg or optimal_token_baseline, found \"grppo\" (did you mean \"grpo\"?)")
set(actor actor_rollout_ref.actor.ppo)
settings_refused("a mini-batch of verl above its batch" verl.sh "train_batch_size=64|train_batch_size=16"
  "4: data.train_batch_size: verl refuses 16 prompts a step, fewer than ${actor}_mini_batch_size = 32: expected at least 32 prompts, or mini-batches of at most 16")
settings_refused("a batch of verl below the usual mini-batch" verl.sh "ppo_mini_batch_size=32|entropy_coeff=0"
  "4: data.train_batch_size: verl refuses 64 prompts a step, fewer than ${actor}_mini_batch_size = 256: expected at least 256 prompts, or mini-batches of at most 64")
settings_refused("a micro-batch of verl that divides no mini-batch" verl.sh "per_gpu=8|per_gpu=6"
  "9: ${actor}_micro_batch_size_per_gpu: verl refuses 6, which does not divide the 16 rows that a learner has of a mini-batch (32 x 4 responses over 8 learners): expected 4 or 8")
settings_refused("a micro-batch of all learners of verl that divides no mini-batch" verl.sh "micro_batch_size_per_gpu=8|micro_batch_size=24"
  "9: ${actor}_micro_batch_size: verl refuses 24, which does not divide ${actor}_mini_batch_size = 32: expected 16 or 32")
settings_refused("a micro-batch of all learners of verl that is none of each" verl.sh "micro_batch_size_per_gpu=8|micro_batch_size=4"
  "9: ${actor}_micro_batch_size: verl refuses 4 rows for 8 GPUs: expected at least 8, or ${actor}_micro_batch_size_per_gpu")
settings_refused("a mini-batch of verl that is none of each learner" verl.sh "mini_batch_size=32|mini_batch_size=1"
  "8: ${actor}_mini_batch_size: verl refuses 1 prompts x 4 responses, fewer than 8 learners: expected at least 2")
settings_refused("responses of verl that GPUs do not share" verl.sh "train_batch_size=64|train_batch_size=65"
  "4: data.train_batch_size: verl refuses 65 prompts x 4 responses, which 8 does not divide (GPUs of trainer.nnodes and n_gpus_per_node): expected 64 or 66 prompts")
cli("micro-batches of verl by tokens" ARGS memory @WORK@/own.sh
  SHELL "sed 's/per_gpu=8/per_gpu=6 actor_rollout_ref.actor.use_dynamic_bsz=True/; s/train_batch_size=64/train_batch_size=16/' ${folder}/verl.sh >@WORK@/own.sh; \"$@\"" OUTPUT "\nfits\n")
settings_refused("a misspelt key of verl" verl.sh "data.train_batch_size|data.train_batch_sizes"
  "4: data.train_batch_sizes: unknown key (did you mean \"train_batch_size\"?)")
cli("a NeMo-RL file that says its machine alone" ARGS import @WORK@/own.yaml
  SHELL "cp ${folder}/nemo.yaml @WORK@/base.yaml; printf 'defaults: [base.yaml]\\ncluster: {num_nodes: 2}\\n' >@WORK@/own.yaml; \"$@\""
  OUTPUT "\n  num_samples_per_prompt_rollout: 8 ")
cli("trainers of open-instruct that are not read" ARGS import @WORK@/own.sh CODE 2
  SHELL "printf 'python open_instruct/reward_modeling.py --model_name_or_path Qwen/Qwen2.5-0.5B --tokenizer_name x\\n' >@WORK@/own.sh; \"$@\""
  ERROR "@WORK@/own.sh:1: open_instruct/reward_modeling.py of open-instruct is not read yet; expected grpo_fast.py, finetune.py or dpo_tune_cache.py")
settings_refused("distillation of a NeMo-RL file" nemo-sft.yaml "^sft:|distillation:"
  "1: distillation: of a NeMo-RL file is not read yet; expected grpo, sft or dpo")
settings_refused("a NeMo-RL file that goes on from nothing" nemo.yaml "grpo_math_1B|other"
  "1: defaults: no file @WORK@/other.yaml, which this one goes on from")
cli("degrees of TorchTitan that the machine does not have" ARGS memory ${folder}/small.toml --cluster h100-8 --nodes 2 CODE 2
  ERROR "${folder}/small.toml:22: parallelism.data_parallel_shard_degree: the degrees make 8 ranks, and the machine has 16: --set parallelism.data_parallel_shard_degree=-1 takes all that are left")
cli("a TOML file of no kind" ARGS run @WORK@/own.toml CODE 2 SHELL "printf '[tool]\\nname = 1\\n' >@WORK@/own.toml; \"$@\""
  ERROR_MATCHES "own.toml: looks like nothing that is read here: .* a TorchTitan file")

# ---- written and read back ----
# A scenario that files of the kind can say whole: the file says so, and a step takes as long.
function(round_trip kind file)
  cli("a scenario as a file of ${kind}${ARGN} and back" ARGS export @ROOT@/tests/cli/settings/${kind}${ARGN}.scenario.yaml --as ${kind} -o ${file}
    SHELL "set -e; \"$@\" >said; head -n 1 said; sed -n 2p said | sed \"s|^stepsim|'$1'|\" >again; { \"$1\" run \"$3\" --samples 0 --json; sh -c \"$(cat again) --samples 0 --json\"; } | grep -oE '\"(step_time_s|peak_memory_bytes)\": [0-9.e+]+' | sort | uniq -c | grep -c ' 2 '"
    OUTPUT "^${file}: 0 keys of the scenario it cannot say\n2\n$")
endfunction()
round_trip(accelerate own.sh)
round_trip(axolotl own.yaml)
round_trip(deepspeed own.json)
round_trip(megatron own.sh)
round_trip(openrlhf own.sh)
round_trip(torchtitan own.toml)
round_trip(megatron own.sh -stages)
round_trip(torchtitan own.toml -stages)
cli("a GRPO scenario as a script of verl and back" ARGS export @ROOT@/tests/cli/settings/verl.scenario.yaml --as verl -o own.sh
  SHELL "\"$@\" && cat own.sh" OUTPUT "^own.sh: 0 keys of the scenario it cannot say\n.*\n  actor_rollout_ref.rollout.n=4 ")
cli("stages, engines and their sleep as a script of verl and back" ARGS export @ROOT@/tests/cli/settings/verl.scenario.yaml --as verl -o own.sh
  --set stack=megatron --set strategy.zero=1 --set strategy.pipeline_parallel.size=2 --set engine=sglang --set job.vllm_sleep_level=0
  SHELL "\"$@\" && cat own.sh" OUTPUT "^own.sh: 0 keys of the scenario it cannot say\n.*\n  actor_rollout_ref.rollout.name=sglang .*megatron.pipeline_model_parallel_size=2 .*\n  actor_rollout_ref.rollout.free_cache_engine=false ")
cli("rounds and types as a script of verl" ARGS export @ROOT@/tests/cli/settings/verl.scenario.yaml --as verl -o own.sh
  --set job.prompts_per_round=128 --set strategy.master_weights=false
  SHELL "\"$@\" && cat own.sh" OUTPUT "^own.sh: 1 key of the scenario it cannot say\n.*\n#   job.zero_std_fraction: 0; here it is 0.4\npython3 -m recipe.dapo.main_dapo .*\n  data.gen_batch_size=128 .*\n  algorithm.filter_groups.enable=true .*fsdp_config.model_dtype=bfloat16 ")
cli("what a file cannot say stands in it" ARGS export @ROOT@/tests/cli/settings/axolotl.scenario.yaml --as torchtitan -o own.toml
  SHELL "\"$@\" && cat own.toml" OUTPUT "\n# What this file cannot say:\n#   stack: axolotl-liger; here it is fsdp2-eager\n.*\n#   strategy.zero: 3; here it is fsdp\n")
cli("what a JSON file cannot say is told" ARGS export @ROOT@/tests/cli/settings/axolotl.scenario.yaml --as deepspeed -o own.json
  SHELL "\"$@\" 2>&1 >/dev/null | head -n 1" OUTPUT "^note: own.json cannot say stack: axolotl-liger; here it is deepspeed-hf\n$")
foreach(kind accelerate axolotl openrlhf)
  cli("a scenario in JSON as a file of ${kind}" ARGS export own.json --as ${kind} -o out/file
    SHELL "printf '{\"name\": \"own\", \"model\": \"qwen3-4b\", \"stack\": \"deepspeed-hf\", \"cluster\": {\"node\": \"h100-8\"}, \"job\": {\"sequence\": 4096}, \"strategy\": {\"zero\": 2}}' >own.json; \"$@\" && grep -c Qwen/Qwen3-4B out/file"
    OUTPUT " --set model=qwen3-4b --set 'cluster={node: h100-8}'\n1\n$")
endforeach()
cli("a model in quotes is no other one" ARGS export own.yaml --as deepspeed -o own.json
  SHELL "sed 's/^\\([a-z]*\\): \\([a-z][a-z0-9.-]*\\)$/\\1: \"\\2\"/' @ROOT@/tests/cli/settings/deepspeed.scenario.yaml >own.yaml; grep -c '\"' own.yaml; \"$@\" | head -n 1"
  OUTPUT "^[2-9]\nown.json: 0 keys of the scenario it cannot say\n$")
cli("a model by its parts as a file of Axolotl" ARGS export @ROOT@/tests/cli/settings/pretrain.sh --as axolotl -o own.yaml
  OUTPUT "^own.yaml: [0-9]+ keys of the scenario it cannot say\nstepsim run own.yaml --from axolotl --set 'model=.architectures: ")
# Of a model that every layer of has experts, the width of the dense layers that it has not must not be 0.
function(model_by_parts name output)
  cli("a script of Megatron of ${name}" ARGS export own.yaml --as megatron -o own.sh
    SHELL "printf 'name: own\\nmodel: ${name}\\ncluster: {node: h100-8}\\nstack: megatron\\njob: {sequence: 2048}\\nstrategy: {zero: 1}\\n' >own.yaml; \"$@\" && cat own.sh" OUTPUT "${output}")
endfunction()
model_by_parts(qwen3-30b-a3b "^own.sh: 0 keys of the scenario it cannot say\n.*\n  --ffn-hidden-size 768 .*\n  --moe-ffn-hidden-size 768 ")
model_by_parts(mistral-7b "\n# What this file cannot say:\n#   model, window: 4096 tokens; here it is none\n")
model_by_parts(falcon-7b "#   model, parameters: 6921720704; here it is 9[0-9]+\n#   model, norms: with biases, one for attention and feed-forward; here it is without biases, before attention and feed-forward\n#   model, feed-forward: 18176 wide, without a gate; here it is 18176 wide, with a gate\n")
model_by_parts(gemma-2-9b "#   model, window: 4096 tokens except in one layer of 2; here it is none\n#   model, norms: without biases, before and behind attention and feed-forward; here it is without biases, before attention and feed-forward\n#   model, logits: bounded; here it is as they are\n")
model_by_parts(gpt-oss-20b "#   model, attention: 64 heads of 64, 8 for keys and values, sinks; here it is 64 heads of 64, 8 for keys and values\n#   model, window: 128 tokens except in one layer of 2; here it is none\n")
cli("a model that TorchTitan does not have" ARGS export @ROOT@/tests/cli/tiny.yaml --set model=gemma-2-9b --as torchtitan -o out/own.toml CODE 2
  ERROR_MATCHES "^stepsim: --as torchtitan: no model of TorchTitan is gemma-2-9b; it has llama-3.2-1b, .*, gpt-oss-120b\n$")
cli("a model of TorchTitan by its name on Hugging Face" ARGS export @ROOT@/tests/cli/tiny.yaml --set model=meta-llama/Llama-3.1-8B --as torchtitan -o own.toml
  SHELL "\"$@\" >said && grep -A 2 '^.model.$' own.toml" OUTPUT "^.model.\nname = \"llama3\"\nflavor = \"8B\"\n$")
# The loss that the stack has is said as well, and the plugin without which Axolotl reads no key of Liger.
set(liger export @ROOT@/tests/cli/settings/axolotl.scenario.yaml --set strategy.cross_entropy=stack --as axolotl -o own.yaml)
cli("the loss of Liger's stack as a file of Axolotl" ARGS ${liger} SHELL "\"$@\" && cat own.yaml"
  OUTPUT "^own.yaml: 0 keys of the scenario it cannot say\n.*\nliger_fused_linear_cross_entropy: true\n.*\nplugins: .axolotl.integrations.liger.LigerPlugin.\n")
cli("Liger's keys without its plugin" ARGS ${liger}
  SHELL "\"$@\" >said && sed -i /^plugins/d own.yaml && \"$1\" memory own.yaml --cluster h100-8 && \"$1\" import own.yaml --cluster h100-8"
  OUTPUT "\nnote: own.yaml: liger_rope, liger_rms_norm, liger_glu_activation, liger_fused_linear_cross_entropy: Axolotl does not read them without plugins: .axolotl.integrations.liger.LigerPlugin.; the step is without them\n.*\nstack: axolotl .*  cross_entropy: logits ")
cli("pairs whose loss is Liger's as a file of Axolotl" ARGS ${liger} --set job.method=dpo --set job.packing=false --set strategy.cross_entropy=fused
  SHELL "\"$@\" && cat own.yaml" OUTPUT "\ndpo_use_liger_kernel: true\n")
cli("a GRPO scenario that verl would refuse" ARGS export grpo-32b-12-nodes --as verl -o out/own.sh CODE 2
  ERROR_MATCHES "^stepsim: --as verl: what it would say is refused when it is read: out/own.sh:14: data.train_batch_size: verl refuses 8 prompts x 8 responses, which 48 does not divide .*: expected 6 or 12 prompts\n$")
cli("a kind of file that there is not" ARGS export @ROOT@/tests/cli/tiny.yaml --as torchtitn -o out/own.toml CODE 2
  ERROR "--as: expected accelerate, axolotl, deepspeed, megatron, openrlhf, paje, simgrid, torchtitan or verl, found \"torchtitn\" (did you mean \"torchtitan\"?)")
cli("a file without a place" ARGS export @ROOT@/tests/cli/tiny.yaml --as torchtitan CODE 2
  ERROR "-o FILE is missing: where the file goes")
cli("a trace and a file at once" ARGS export @ROOT@/tests/cli/tiny.yaml --as torchtitan --perfetto x CODE 2
  ERROR "--perfetto, --memory-viz and --as: expected one of them")
cli("supervised training as a script of verl" ARGS export @ROOT@/tests/cli/tiny.yaml --as verl -o out/own.sh CODE 2
  ERROR "--as verl: is for scenarios of method: grpo")
cli("a DeepSpeed file without ZeRO" ARGS export @ROOT@/tests/cli/tiny.yaml --set strategy={zero:\ fsdp} --as deepspeed -o out/own.json CODE 2
  ERROR "--as deepspeed: is for strategy.zero of 1, 2 or 3")
