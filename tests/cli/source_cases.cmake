# Cases of files of other programs. How a case is written stands at the top of cases.cmake.
if(NOT COMMAND cli)
  return()
endif()
cli("rows and tokens of a data set at once" ARGS run @ROOT@/tests/cli/axolotl/small-sft.8xMI300.yaml --samples-in-set 10000 --tokens 1e7 CODE 2
  ERROR "--tokens and --samples-in-set: both say how much data there is, say one of them; rows that are not packed are counted by --samples-in-set")
set(folder @ROOT@/tests/cli/axolotl)
set(sft ${folder}/small-sft.8xMI300.yaml)
set(dpo ${folder}/small-dpo.8xMI300.yaml)
set(json ${folder}/small_zero3.json)

# ---- as they are ----
cli("an Axolotl file is run as it is" ARGS run --full ${sft} --samples 0 --faster 0
  OUTPUT "\nnot in the file +taken +because +change it with\n[- ]+\nmodel +llama-3.2-1b for meta-llama/Llama-3.2-1B-Instruct +it is llama-3.2-1b of the catalogue +--model NAME\nmachine +mi300x-8 +the file is called 8xMI300 .*\nsize of the data set +not known.*step time .*small-sft.8xMI300.yaml: neftune_noise_alpha .noise on[^\n]*, saves_per_epoch .how many[^\n]*: not modelled; the result is without it\n")
cli("keys of an Axolotl file that do nothing are said" ARGS run --full ${sft} --samples 0 --faster 0
  OUTPUT "small_zero3.json: offload_param stands outside zero_optimization, where DeepSpeed does not look: nothing is offloaded\n")
cli("a model is found by the file that wrote it" ARGS memory ${dpo}
  OUTPUT "\nmodel +llama-3.2-1b for /data/outputs/small-sft/checkpoint-40 +small-sft.8xMI300.yaml writes it, from meta-llama/Llama-3.2-1B-Instruct ")
cli("offload replaces an optimizer, and a moe block is not heeded" ARGS run --full ${dpo} --samples 0 --faster 0
  OUTPUT "optimizer: adamw_torch_8bit is replaced: with its states on the host the optimizer is DeepSpeed's own AdamW, with states in 32 bits\n.*small_zero2_offload.json: moe is no key of DeepSpeed, and models of Hugging Face do not heed it: experts run as the model's code has them\n")
cli("the machine is chosen on the command line" ARGS run --full ${sft} --samples 0 --faster 0 --cluster h100-8 --nodes 2
  OUTPUT "llama-3.2-1b on 2 x h100-8, axolotl with Liger kernels")
cli("tokens of the data set give the time of the job" ARGS run --full ${sft} --samples 0 --faster 0 --tokens 1e8 OUTPUT "\nwhole job +[0-9]")
cli("pairs of the data set give the time of the job" ARGS run --full ${dpo} --samples 0 --faster 0 --samples-in-set 20000
  OUTPUT "\nwhole job .*\nbatches +16 pairs to a step")
cli("a sweep over a key of an Axolotl file" ARGS sweep ${sft} --vary sequence_len=1024,2048 --csv
  SHELL "\"$@\" | cut -d, -f1 | tail -n 2 | tr '\\n' ' '" OUTPUT "^1024 2048 $")
cli("a sweep says what it takes, and of a key that is not modelled that it moves nothing" ARGS sweep ${sft} --vary neftune_noise_alpha=5,10
  OUTPUT "^not in the file .*\nlength of rows .*\nnote: neftune_noise_alpha is varied, and is not modelled .*: points that differ in it alone are alike\n.*2 points, 2 of them can run.*\nboth alike: ")
cli("a sweep's notes as JSON" ARGS sweep ${sft} --vary neftune_noise_alpha=5,10 --json
  OUTPUT "\"assumptions\": .*\"notes\": .*neftune_noise_alpha is varied, and is not modelled.*\"alike\": true, \"fastest\": null")
cli("a key of a scenario over an Axolotl file" ARGS show ${sft} --set strategy.checkpointing=none
  OUTPUT "checkpointing +none +--set\n")
cli("show says from which line a key came" ARGS show ${sft} OUTPUT "sequence +2048 +[^\n]*small-sft.8xMI300.yaml:22\n")
cli("a DeepSpeed file alone" ARGS run --full ${json} --model llama-3.2-1b --cluster mi300x-8 --samples 0 --faster 0
  OUTPUT "length of rows +4096 tokens .*train_micro_batch_size_per_gpu +8 +the file leaves it to the trainer, whose default it is .*step time ")

set(grpo ${folder}/small-grpo.8xH100.yaml)
cli("a GRPO file with a server beside its learners" ARGS run --full ${grpo} --samples 0 --faster 0
  OUTPUT "\n6 learners, 1 engine of 2 GPUs; 12 prompts x 8 responses a step\n.*step time ")
cli("a GRPO file whose engines share GPUs with learners" ARGS import @WORK@/own.8xH100.yaml
  SHELL "cp ${folder}/*.json @WORK@; sed 's|use_vllm: true|use_vllm: true\\n  vllm_mode: colocate|' ${grpo} >@WORK@/own.8xH100.yaml; \"$@\""
  OUTPUT "\n  layout: colocated +# trl.vllm_mode, line 12\n.*\n  vllm_sleep_level: 0 +# trl.vllm_enable_sleep_mode .*\n  num_unique_prompts_rollout: 16 .*128 completions in groups of 8\n")
# ${machine}: options; OUTPUT: who learns and who generates.
function(launched_beside_a_server name processes machine line)
  cli("${name}" ARGS run --full @WORK@/grpo.sh --samples 0 --faster 0 ${machine}
    SHELL "printf 'accelerate launch --num_processes ${processes} grpo.py\\n' >@WORK@/grpo.sh; printf 'from trl import GRPOTrainer, GRPOConfig\\nargs = GRPOConfig(use_vllm=True, vllm_mode=\"server\", per_device_train_batch_size=4, num_generations=8, gradient_accumulation_steps=2)\\nGRPOTrainer(model=\"Qwen/Qwen2.5-0.5B-Instruct\", args=args)\\n' >@WORK@/grpo.py; \"$@\""
    OUTPUT "${line}")
endfunction()
launched_beside_a_server("a server of TRL's has GPUs behind all that are launched" 8 ""
  "on 2 x h100-8 .*\n8 learners, 1 engine of 1 GPU, 7 GPUs idle; 8 prompts x 8 responses a step\n")
launched_beside_a_server("a server of TRL's is beside launched learners where a node has room" 6 "--cluster;h100-8"
  "on 1 x h100-8 .*\n6 learners, 1 engine of 1 GPU, 1 GPU idle; 6 prompts x 8 responses a step\n")
cli("answers that were liked or not" ARGS run --full @WORK@/own.8xMI300.yaml --samples 0 --faster 0
  SHELL "cp ${folder}/*.json @WORK@; sed 's|^strict: false|rl: kto|; s|^sample_packing: true|sample_packing: false|' ${sft} >@WORK@/own.8xMI300.yaml; \"$@\""
  OUTPUT "step time .*for 12 FLOP a token and matrix parameter")

cli("adapters beside some matrices" ARGS import @WORK@/own.8xMI300.yaml
  SHELL "cp ${folder}/*.json @WORK@; sed 's|^strict: false|adapter: lora\\nlora_r: 16\\nlora_target_modules: [q_proj, v_proj, wqkv]|' ${sft} >@WORK@/own.8xMI300.yaml; \"$@\""
  OUTPUT "\n  lora:\n    rank: 16 .*\n    targets: attention .*\n    modules: \\[q_proj, v_proj\\] +# lora_target_modules, line 7\n")

# ---- import ----
cli("import --help" ARGS import --help OUTPUT "^usage: stepsim import.*examples:")
cli("an import says from which line each key came" ARGS import ${sft}
  OUTPUT "\n  sequence: 2048 +# sequence_len, line 22\n.*\n  micro_batch: 2 +# micro_batch_size, line 29\n.*\n  optimizer: adamw_torch_8bit +# optimizer, line 31\n")
cli("an imported scenario runs as its source does" ARGS import ${sft} -o @WORK@/out/own.yaml
  SHELL "\"$@\" >/dev/null; for each in ${sft} @WORK@/out/own.yaml; do \"$1\" run \"$each\" --samples 0 --json | grep -oE '\"(step_time_s|peak_memory_bytes)\": [0-9.]+'; done | sort | uniq -c | grep -c ' 2 '"
  OUTPUT "^2\n$")
cli("every key of a source is in one of four lists" ARGS import ${sft} --keys
  OUTPUT "^used +line\n.*sequence_len +22  job.sequence\n.*\nchanges neither time nor memory +line\n.*\nfp16 +empty\n.*\nnot modelled; the result is without it +line\n.*neftune_noise_alpha +26  noise on the embeddings: the real step is slower by less than 1 %\n")

# ---- what is wrong ----
# A copy with one line changed, beside what it names.
function(source_refused name line error)
  cli("Axolotl file with ${name}" ARGS memory @WORK@/own.yaml --cluster h100-8 CODE 2
    SHELL "cp ${folder}/*.json @WORK@; sed 's|${line}|' ${sft} >@WORK@/own.yaml; \"$@\"" ERROR "@WORK@/own.yaml:${error}")
endfunction()
source_refused("a misspelt key" "^sequence_len|sequence_length" "22: sequence_length: unknown key (did you mean \"sequence_len\"?)")
source_refused("an unknown optimizer" "adamw_torch_8bit|adamw_torch_9bit"
  "31: optimizer: Axolotl has no optimizer \"adamw_torch_9bit\" (did you mean \"adamw_torch_8bit\"?)")
source_refused("a model that is nowhere" "base_model: .*|base_model: /data/outputs/other"
  "1: base_model: \"/data/outputs/other\" is neither in the catalogue, nor in the local cache of Hugging Face, nor a folder here: name one with --model: `stepsim list models` names them, and the path of a config.json will do")
source_refused("a DeepSpeed file that is not there" "small_zero3|zero4"
  "43: deepspeed: no file @WORK@/zero4.json or zero4.json or @WORK@/deepspeed_configs/zero4.json, and zero4.json is none of those that Axolotl comes with: zero1.json, zero1_torch_compile.json, zero2.json, zero2_torch_compile.json, zero3.json, zero3_bf16.json, zero3_bf16_cpuoffload_all.json, zero3_bf16_cpuoffload_params.json")
source_refused("a method that is not read" "^strict: false|rl: gdpo"
  "5: rl: gdpo of an Axolotl file is not read yet; expected dpo, ipo, orpo, simpo, kto or grpo")
function(grpo_refused name line error)
  cli("GRPO file of Axolotl with ${name}" ARGS memory @WORK@/own.8xH100.yaml CODE 2
    SHELL "cp ${folder}/*.json @WORK@; sed 's|${line}|' ${grpo} >@WORK@/own.8xH100.yaml; \"$@\"" ERROR "@WORK@/own.8xH100.yaml:${error}")
endfunction()
cli("GRPO file of Axolotl without an engine" ARGS run @WORK@/none.8xH100.yaml --faster 0
  SHELL "cp ${folder}/*.json @WORK@; sed 's|use_vllm: true|use_vllm: false|' ${grpo} >@WORK@/none.8xH100.yaml; \"$@\""
  OUTPUT "GRPO, full training; 16 prompts x 8 responses of 1024 tokens at most, 8 GPUs[*], answers[ \n]+by transformers' generate;")
grpo_refused("groups that do not come out even" "num_generations: 8|num_generations: 7"
  "13: trl.num_generations: 96 completions (4 x 4 x 6 learners) are no whole number of groups of 7; --set cluster.gpus_per_node=N says how many GPUs it is launched on")
grpo_refused("a server that takes all GPUs" "tensor_parallel_size: 2|tensor_parallel_size: 8"
  "6: vllm.tensor_parallel_size: a server on 8 GPUs leaves no learner on 1 x 8: name more with --cluster and --nodes")
source_refused("a block of DeepSpeed's keys" "^deepspeed: .*|deepspeed: {zero_optimization: {stage: 2}}"
  "43: deepspeed: expected the name of a file, found a block of keys")
source_refused("two ways of sharding" "^fsdp:|fsdp: [full_shard]" "43: deepspeed: stands beside fsdp: Axolotl takes one of them")
source_refused("a number out of range" "micro_batch_size: 2|micro_batch_size: 0" "29: micro_batch_size: expected a number from 1 to 65536, found 0")

function(kind_refused name text error)
  cli("file of ${name}" ARGS run @WORK@/own.yaml CODE 2 SHELL "printf '${text}' >@WORK@/own.yaml; \"$@\""
    ERROR "@WORK@/own.yaml: ${error}")
endfunction()
cli("file of no kind" ARGS run @WORK@/own.yaml CODE 2 SHELL "printf 'colour: red\\nsize: 3\\n' >@WORK@/own.yaml; \"$@\""
  ERROR_MATCHES "own.yaml: looks like nothing that is read here: .*; also read are an Axolotl file, a DeepSpeed file, .* a notebook, ")
kind_refused("two kinds" "base_model: x/y\\nsequence_len: 1024\\nstrategy: {zero: 3}\\n"
  "looks like a scenario (strategy, line 3) and like an Axolotl file (base_model, line 1) at once: --from scenario or --from axolotl says which")
kind_refused("a merge" "merge_method: linear\\nbase_model: x/y\\n" "is a recipe of mergekit, which trains nothing")
kind_refused("Accelerate" "compute_environment: LOCAL_MACHINE\\n" "is a file of Accelerate, which trains nothing by itself: --accelerate takes it beside a file of arguments")
cli("a kind that there is not" ARGS run ${sft} --from axolottl CODE 2
  ERROR "--from: expected scenario, axolotl, deepspeed, openrlhf, autotrain, slime, megatron, verl, verl-sft, nemo-rl, open-instruct-tuning, open-instruct, automodel, gpt-neox, llm-foundry, torchtune, nanotron, litgpt, torchtitan, llama-factory, llama-factory-v1, ms-swift, megatron-swift or trl, found \"axolottl\" (did you mean \"axolotl\"?)")
cli("a setting that no key of the source has" ARGS run ${sft} --set micro_batch_siz=3 CODE 2
  ERROR "--set: micro_batch_siz: unknown key (did you mean \"micro_batch_size\"?)")
cli("a machine in the name that the catalogue does not have" ARGS run @WORK@/own.8x9999.yaml CODE 2
  SHELL "cp ${folder}/*.json @WORK@; cp ${sft} @WORK@/own.8x9999.yaml; \"$@\""
  ERROR_MATCHES "own.8x9999.yaml:1: is called for 8x9999, and the catalogue has no such node: name one with --cluster; `stepsim list nodes` names them")
cli("a DeepSpeed file without a model" ARGS run ${json} CODE 2
  ERROR_MATCHES "small_zero3.json:1: is a DeepSpeed file, which names no model: --model NAME does; `stepsim list models` names them, and the path of a config.json will do")
cli("samples of packed rows" ARGS run ${sft} --samples-in-set 1000 CODE 2
  ERROR "--samples-in-set: rows are packed, so the number of documents does not say how many rows there are; --set job.document_length.mean=TOKENS beside it does, or --tokens")
cli("tokens of a scenario" ARGS run @ROOT@/tests/cli/tiny.yaml --tokens 1e9 CODE 2
  ERROR "--tokens and --samples-in-set are for files of other programs: a scenario says job.tokens or job.samples")
cli("a number of tokens that is none" ARGS run ${sft} --tokens many CODE 2
  ERROR "--tokens: expected a number such as 2.5e8, found \"many\"")
cli("an import of a scenario" ARGS import @ROOT@/tests/cli/tiny.yaml CODE 2 ERROR "@ROOT@/tests/cli/tiny.yaml: is a scenario already")
