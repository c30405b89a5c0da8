# Cases of scripts that start trainings. How a case is written stands at the top of cases.cmake.
if(NOT COMMAND cli)
  return()
endif()
set(folder @ROOT@/tests/cli/scripts)
set(openrlhf ${folder}/pair.openrlhf.sh)

# ---- OpenRLHF ----
cli("an OpenRLHF script is run as it is" ARGS run ${openrlhf} --samples 0
  OUTPUT "\nmodel +llama-3.2-1b for meta-llama/Llama-3.2-1B-Instruct .*\nmachine +2 of h100-8 +the launcher says 2 GPUs .*step time .*: the script starts 2 trainings: this is openrlhf.cli.train_sft of line 19; --launch N takes another: openrlhf.cli.train_dpo of line 44\n.*zero_stage: 2moe is stage 2 with a moe block, which models of Hugging Face do not heed: .*zpg works with stage 3 only; DeepSpeed does not look at it below\n")
cli("keys of an OpenRLHF script become keys of a scenario" ARGS import ${openrlhf}
  OUTPUT "\nmodel: \"llama-3.2-1b\" +# pretrain, line 20: meta-llama/Llama-3.2-1B-Instruct\n.*\nstack: openrlhf-liger +# use_liger_kernel, line 28: .*\n  sequence: 2048 +# max_len, line 33\n  micro_batch: 4 +# micro_train_batch_size, line 31\n  global_batch: 32 +# train_batch_size, line 30\n.*\n  zero: 2 +# zero_stage, line 24\n.*\n    overlap_comm: true +# overlap_comm, line 39\n  optimizer: adamw_4bit +# optimizer, line 29: adamw_torchao_4bit\n  gradient_dtype: fp32 +# grad_accum_dtype, line 32\n  checkpointing: full +# gradient_checkpointing, line 26\n  attention: flash +# attn_implementation, line 27\n  cross_entropy: logits ")
cli("every argument of a script is in one of four lists" ARGS import ${openrlhf} --keys
  OUTPUT "^used +line\n.*\nchanges neither time nor memory +line\n.*\nwandb_run_name +40  not known without a run\n.*\nnot modelled; the result is without it +line\n.*packing_samples +34 ")
cli("another training of a script" ARGS show ${openrlhf} --launch 2
  OUTPUT "method +dpo .*sequence +1024 +[^\n]*pair.openrlhf.sh:55\n")
cli("a model that a launch before writes" ARGS run ${openrlhf} --launch 2 --samples 0
  OUTPUT "\nmodel +llama-3.2-1b for /data/outputs/small-sft +the launch of line 19 writes it, from meta-llama/Llama-3.2-1B-Instruct .*optimizer: adamw_torchao_8bit is replaced: with its states on the host")
cli("a launch that a script does not have" ARGS run ${openrlhf} --launch 3 CODE 2
  ERROR "--launch 3: the script starts 2 trainings: openrlhf.cli.train_sft of line 19, openrlhf.cli.train_dpo of line 44")
cli("a launch of a file that is no script" ARGS run @ROOT@/tests/cli/tiny.yaml --launch 2 CODE 2
  ERROR "--launch: @ROOT@/tests/cli/tiny.yaml is no script")
cli("a variable of a script is set" ARGS show ${openrlhf} --set MBS=2 OUTPUT "micro_batch +2 ")
cli("an argument of a script is set" ARGS show ${openrlhf} --set max_len=512 OUTPUT "sequence +512 ")
cli("a sweep over a variable of a script" ARGS sweep ${openrlhf} --vary MBS=1,2 --csv
  SHELL "\"$@\" | cut -d, -f1 | tail -n 2 | tr '\\n' ' '" OUTPUT "^1 2 $")
cli("the launcher's GPUs stay on another machine" ARGS show ${openrlhf} --cluster mi300x-8 OUTPUT "gpus_per_node +2 ")
cli("more GPUs than the machine has" ARGS run ${openrlhf} --set NUM_GPUS=4 --cluster rtxpro6000-2 --samples 0
  SHELL "\"$@\"; true" OUTPUT "the launcher asks for 4 GPUs of a node, which has 2: these are taken\n")
cli("an imported script runs as its source does" ARGS import ${openrlhf} --cluster mi300x-8 -o @WORK@/out/script.yaml
  SHELL "\"$@\" >/dev/null; for each in \"${openrlhf} --cluster mi300x-8\" @WORK@/out/script.yaml; do \"$1\" run $each --samples 0 --json | grep -oE '\"(step_time_s|peak_memory_bytes)\": [0-9.]+'; done | sort | uniq -c | grep -c ' 2 '"
  OUTPUT "^2\n$")

# ---- what is wrong ----
# A copy with one line changed.
function(script_refused name line error)
  cli("script with ${name}" ARGS memory @WORK@/own.sh CODE 2
    SHELL "sed 's|${line}|' ${openrlhf} >@WORK@/own.sh; \"$@\"" ERROR "@WORK@/own.sh:${error}")
endfunction()
script_refused("a variable that nothing sets" "^MBS=4|X=4"
  "31: micro_train_batch_size: hangs on MBS, which nothing sets: --set MBS=... says it")
script_refused("a command that decides an argument" "^MBS=4|MBS=$(nproc)"
  "31: micro_train_batch_size: hangs on $(nproc) of line 10, which is not run: --set MBS=... says it")
script_refused("an if that decides an argument" "^MBS=4|if [ -f x ]; then MBS=4; fi"
  "31: micro_train_batch_size: hangs on the `if` of line 10: --set MBS=... says it")
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
  ":2: the script starts serve.py of line 2, and none of that is a training that is read here: axolotl.cli.train, axolotl train, scripts/finetune.py, openrlhf.cli.train_*, *pretrain_gpt.py, *pretrain_mamba.py, *run_pretrain*.py, *finetune_gpt.py, verl.trainer.main_*, recipe.*.main_*, *run_grpo*.py, *grpo_fast.py, open_instruct.grpo_fast")
other_script("a training that is not read" "python -m openrlhf.cli.train_ppo_ray --pretrain x\\n"
  ":1: openrlhf.cli.train_ppo_ray is not read yet; expected openrlhf.cli.train_sft, openrlhf.cli.train_dpo or openrlhf.cli.train_rm")

# ---- scripts that name a file ----
cli("a script that starts a file of Axolotl" ARGS run @WORK@/own.sh --samples 0
  SHELL "cp @ROOT@/tests/cli/axolotl/* @WORK@; printf 'accelerate launch -m axolotl.cli.train small-sft.8xMI300.yaml --micro_batch_size 1\\n' >@WORK@/own.sh; \"$@\""
  OUTPUT "machine +mi300x-8 +the file is called 8xMI300 .*step time ")
cli("a script that starts a file that is not there" ARGS run @WORK@/own.sh CODE 2
  SHELL "printf 'axolotl train none.yaml\\n' >@WORK@/own.sh; \"$@\""
  ERROR "@WORK@/own.sh:1: no file @WORK@/none.yaml, which the training is read from")
