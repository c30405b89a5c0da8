# Cases of plan. How a case is written stands at the top of cases.cmake.
if(NOT COMMAND cli)
  return()
endif()
set(small_plan plan llama-3.2-1b --cluster h100-8 --global-batch 32 --sequence 2048 --samples 2)

cli("plan" ARGS ${small_plan} --top 3
  OUTPUT "^llama-3.2-1b, 32 rows of 2048 tokens a step on 1 x h100-8: the fastest of [0-9]+ plans is .*\n  +plan +step .*\nThe second, .*[0-9]+ plans come out even; .*were replayed.*\n$")
cli("plan as JSON" ARGS ${small_plan} --json
  KEYS goal plans cannot_fit cannot_be_best replayed best/0/plan best/0/settings best/0/step_time_s best/0/first_share
       best/4/peak_memory_bytes second/won second/cause)
cli("plan with what is set and what is kept" ARGS ${small_plan} --set strategy.tensor_parallel.size=2
  --where "strategy.checkpointing == \"full\"" --top 2 OUTPUT "TP 2.*checkpointing full.*\n2  .*TP 2.*checkpointing full")
cli("plan with stages that somebody set" ARGS ${small_plan} --set strategy.pipeline_parallel.size=2 --top 1 OUTPUT "PP 2")
cli("plan says over how many GPUs experts are" ARGS plan qwen3-30b-a3b --cluster superpod-h100 --nodes 2 --global-batch 64 --samples 0
  --where "strategy.pipeline_parallel.size == 1 and strategy.tensor_parallel.size == 1" --top 1 OUTPUT "data 16, experts over [0-9]+, micro-batch")
cli("plan over numbers of nodes" ARGS plan llama-3.2-1b --cluster superpod-h100 --nodes 1,2 --global-batch 32 --goal cost --price 2
  --samples 0 --top 2 OUTPUT "the cheapest[ \n]of .*\ncost .* at 2 each")
cli("plan of a scenario" ARGS plan llama32-3b-sft-zero3 --samples 0 --top 2 OUTPUT "llama-3.2-3b, .*the fastest of [0-9]+ plans is .*zero")
cli("plan says what the job's own split loses" ARGS plan llama32-3b-sft-zero3 --samples 0 --top 1
  OUTPUT "(The first is the job's own.|The job's own, .* takes [0-9.]+ % more, most[ \n]of[ \n]it[ \n]in)")
cli("plan with the job's own as JSON" ARGS plan llama32-3b-sft-zero3 --samples 0 --json KEYS own/plan own/place own/more own/cause own/step_time_s)
cli("plan that leaves memory" ARGS ${small_plan} --free 80 --top 1 --json
  SHELL "\"$@\" | grep -oE '\"(free_share|tight)\": [0-9.]+' | paste -sd ' '" OUTPUT "^\"tight\": [1-9][0-9]* \"free_share\": 0.8\n$")
cli("plan that has to be tight" ARGS plan llama-3.1-8b --cluster h100-8 --global-batch 16 --sequence 2048 --samples 0 --free 85 --top 1
  OUTPUT "[0-9]+ plans come out even. .*[0-9]+ cannot be among.*\nNone leaves 85 % of the memory free: a run may need more than is predicted.\n\nthe first plan: played by [^\n]+\n$")
cli("plan of a GRPO job" ARGS plan grpo-7b-two-nodes --samples 0 --top 2
  OUTPUT "the fastest of [0-9]+ plans is [0-9] learners? on .*, [0-9]+[ \n]engines? of [0-9] GPU")
cli("plan of a GRPO job that says how many engines there are" ARGS plan own.yaml --samples 0 --top 1
  SHELL "sed 's/async_steps: 0/async_steps: 0\\n  vllm_num_engines: 2/' @ROOT@/tests/cli/grpo-small.yaml >own.yaml; \"$@\""
  OUTPUT "Engines are as many as find room beside the[ \n]learners; the job says[ \n]2, and --set[ \n]job.vllm_num_engines keeps a number.\n\nthe first plan: played by [^\n]+\n$")
cli("plan of a GRPO job with what is set in its program's words"
  ARGS plan @ROOT@/tests/cli/settings/verl.sh --cluster h100-8 --samples 0 --set actor_rollout_ref.rollout.tensor_model_parallel_size=2
  OUTPUT "the fastest of 1 plans is 4[ \n]engines[ \n]of[ \n]2[ \n]GPUs: ")
cli("plan of a GRPO job that fits nowhere" ARGS plan @ROOT@/tests/cli/grpo-small.yaml --set model=llama-3.1-70b --samples 0 CODE 1
  OUTPUT "no plan of [0-9]+ fits: not with other.*`stepsim run`[ \n]tries them.\n")
cli("plan of a script on a machine that is named keeps its nodes" ARGS plan @ROOT@/tests/cli/settings/grpo_fast.sh --cluster h100-8
  --samples 0 --top 1 OUTPUT "nodes and GPUs of each +2 x h100-8 .* on[ \n]2 x h100-8")
cli("plan of a GRPO job that leaves memory" ARGS plan grpo-7b-two-nodes --free 5 CODE 2
  ERROR "--free: engines of a GRPO job fill the memory on purpose")
cli("plans as scenarios" HEAVY ARGS ${small_plan} --top 2 -o @WORK@/out/plans
  SHELL "\"$@\" >@WORK@/out/plan.txt && @BUILD@/stepsim run @WORK@/out/plans/1.yaml --samples 0 --json >@WORK@/out/run.json &&
    @BUILD@/stepsim plan llama-3.2-1b --cluster h100-8 --global-batch 32 --sequence 2048 --samples 0 --json >@WORK@/out/plan.json &&
    grep -o '\"step_time_s\": [0-9.e-]*' @WORK@/out/plan.json | head -1 >@WORK@/out/planned &&
    grep -o '\"step_time_s\": [0-9.e-]*' @WORK@/out/run.json | head -1 | diff - @WORK@/out/planned && ls @WORK@/out/plans"
  OUTPUT "^1.yaml\n2.yaml\nplans.csv\nplans.h5\n$")
cli("plan of what fits nowhere near" SLOW ARGS plan llama-3.3-70b --cluster h100-8 --global-batch 16 --sequence 2048 --samples 0 CODE 1
  OUTPUT "no plan of [0-9]+ fits; the one with the[ \n]least memory, .*, needs at least .* of .*On 4 nodes this one fits:.*the fastest[ \n]of ")
set(large_plan plan llama-3.1-405b --cluster superpod-h100 --nodes 128 --global-batch 512 --sequence 8192 --samples 0)
cli("plan that has no time" HEAVY ARGS ${large_plan} --within 1
  SHELL "\"$@\" || test $? = 1" OUTPUT "Time is up after 1 s: [0-9]+ plans are left open.*--within 0[ \n]searches[ \n]to[ \n]the[ \n]end")
cli("plan that somebody ends" HEAVY ARGS ${large_plan} --within 0
  SHELL "timeout --preserve-status -s INT 4 \"$@\" 2>@WORK@/out/best || test $? = 1" OUTPUT "Stopped: [0-9]+ plans are left open")
cli("plan beside whose batch there is a better one" HEAVY
  ARGS plan llama-3.1-8b --cluster superpod-h100 --nodes 7 --global-batch 512 --sequence 8192 --samples 0 --top 1
  OUTPUT "\n504 rows a step instead of 512: [0-9]+ tok/s/GPU, [0-9.]+ % more, by data 28.*--global-batch[ \n]504")
cli("plan with batches beside it" ARGS plan llama-3.2-1b --cluster h100-8 --global-batch 42 --sequence 2048 --samples 0 --top 1 --also-batch --json
  KEYS other_batches/0/rows other_batches/0/gain other_batches/0/plan)
cli("plan with a size without a unit" ARGS ${small_plan} --memory 5 CODE 2
  ERROR "--memory: the unit is missing: expected a size such as \"64KiB\", found \"5\"")
cli("plan without a model" ARGS plan CODE 2
  ERROR_MATCHES "^stepsim: which model or scenario\\? usage: stepsim plan ")
cli("plan of nothing that is known" ARGS plan lama-3.2-1b --cluster h100-8 CODE 2 ERROR_MATCHES "\"lama-3.2-1b\".*did you mean \"llama-3.2-1b\"")
cli("plan without a machine" ARGS plan llama-3.2-1b CODE 2
  ERROR "on which machine? --cluster NAME: `stepsim list clusters` and `list nodes` name them")
cli("plan for a price that nobody says" ARGS plan llama-3.2-1b --cluster h100-8 --goal cost CODE 2
  ERROR "--goal cost: needs --price N, money for a GPU and an hour")
cli("plan for another goal" ARGS plan llama-3.2-1b --cluster h100-8 --goal speed CODE 2
  ERROR "--goal: expected time, cost, memory or energy, found \"speed\"")
cli("plan for the least energy" ARGS plan llama-3.2-1b --cluster h100-8 --global-batch 32 --goal energy --samples 0 --top 2
  OUTPUT "the most frugal of [0-9]+ plans is .* a step, [0-9.]+ [Mk]J, .* memory +energy +binds\n")
cli("plan for the least energy of a GRPO job" ARGS plan grpo-7b-two-nodes --goal energy CODE 2
  ERROR "--goal energy: the energy of GRPO jobs is not predicted, take another goal")
cli("plan of rows that divide by nothing" ARGS plan llama-3.2-1b --cluster h100-8 --stack litgpt --global-batch 7 CODE 2
  ERROR "no plan comes out even: 7 rows of a step, 16 layers and 32 heads of llama-3.2-1b, on 8 GPUs; 8 rows would divide among them")
cli("plan of micro-batches that divide no rows" ARGS plan llama-3.2-1b --cluster h100-8 --set job.micro_batch=3 CODE 2
  ERROR_MATCHES "no plan comes out even: 256 rows of a step, 3 to a micro-batch, 16 layers .* on 8 GPUs.*264 rows would divide among them")
cli("plan with holders that divide no experts" ARGS plan qwen3-30b-a3b --cluster h100-8 --set strategy.moe.expert_parallel=7 CODE 2
  ERROR_MATCHES "strategy.moe.expert_parallel: 7 does not divide 128 experts")
cli("plan of which a condition leaves nothing" ARGS ${small_plan} --where "strategy.tensor_parallel.size > 8" CODE 2
  ERROR "no point is left: no combination meets every condition")
cli("plan onto a file" ARGS ${small_plan} -o @ROOT@/README.md/x CODE 2 ERROR_MATCHES "README.md/x: cannot be made")
cli("plan over what it is made from" ARGS ${small_plan} --top 1 -o @WORK@/own
  SHELL "\"$@\" >@WORK@/own.txt && @BUILD@/stepsim plan @WORK@/own/1.yaml -o @WORK@/own" CODE 2
  ERROR_MATCHES "own/1.yaml")
cli("plan of a scenario over numbers of nodes" ARGS plan llama32-3b-sft-zero3 --nodes 1,2 --samples 0 --top 2
  OUTPUT "the fastest of [0-9]+ plans")
