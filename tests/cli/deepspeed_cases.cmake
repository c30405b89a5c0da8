# Cases of scenarios with a DeepSpeed file. How a case is written stands at the top of cases.cmake.
if(NOT COMMAND cli)
  return()
endif()
set(own @ROOT@/tests/cli/deepspeed.yaml)
set(file @ROOT@/tests/cli/deepspeed.json)

# ---- who wins ----
cli("a DeepSpeed file wins over the scenario" ARGS run --full ${own} --samples 0 --faster 0
  OUTPUT "note: [^\n]*deepspeed.json: zero_optimization.stage 2 stands, not strategy.zero of the scenario\n.*train_micro_batch_size_per_gpu 2 stands, not job.micro_batch of the scenario\n")
cli("what is set wins over a DeepSpeed file" ARGS run --full ${own} --samples 0 --faster 0 --set strategy.zero=3 --set job.micro_batch=4
  OUTPUT "deepspeed.json: zero_optimization.stage is 2 there; strategy.zero was set and stands\n.*train_micro_batch_size_per_gpu is 2 there; job.micro_batch was set and stands\n")
cli("a block that is set wins over a DeepSpeed file in what it says" ARGS run --full ${own} --samples 0 --faster 0 --set "job={sequence: 1024, micro_batch: 4}"
  OUTPUT "train_micro_batch_size_per_gpu is 2 there; job.micro_batch was set and stands\nnote: [^\n]*of_our_own")
cli("a gap between stages with a DeepSpeed file" SLOW ARGS explain ${own} --set strategy.zero=3 --json
  SHELL "\"$@\" | grep -q '\"gap_s\": 0[,.}]*$' && exit 1; \"$@\"" KEYS rows/0/cause)
cli("a sweep over stages with a DeepSpeed file" ARGS sweep ${own} --vary strategy.zero=2,3 --csv
  SHELL "\"$@\" | cut -d, -f2- | tail -n 2 | sort -u | wc -l" OUTPUT "^2\n$")
cli("a search over micro-batches with a DeepSpeed file" ARGS sweep ${own} --find "max job.micro_batch such that fits"
  OUTPUT "^max job.micro_batch such that fits: [0-9]+\nby bisection, [0-9]+ points\n.* yes .* no .*out of memory")

# ---- what is not read ----
cli("notes of a DeepSpeed file" ARGS run --full ${own} --samples 0 --faster 0
  OUTPUT "optimizer.type Lamb is not modelled: AdamW is assumed\n.*of_our_own is no key of DeepSpeed, which ignores it\n.*communication_data_type: fp32 is not modelled; the result is without it\n.*pipeline.stages: 2 is not modelled; the result is without it\n")
cli("a DeepSpeed file that is not there" ARGS run ${own} --set strategy.deepspeed=none.json CODE 2
  ERROR "--set: strategy.deepspeed: no file \"none.json\", beside the scenario or here")

# ---- what is wrong ----
cli("a DeepSpeed file with an optimizer of its own" ARGS show @WORK@/own.yaml
  SHELL "sed 's/deepspeed.json/ds.json/' ${own} >@WORK@/own.yaml; printf '{\"optimizer\": {\"type\": \"Lion\"}}' >@WORK@/ds.json; \"$@\""
  OUTPUT "\n  optimizer +lion +ds.json:1\n")
function(deepspeed_refused name text error)
  cli("DeepSpeed file with ${name}" ARGS run @WORK@/own.yaml CODE 2
    SHELL "sed 's/deepspeed.json/ds.json/' ${own} >@WORK@/own.yaml; printf '%s' '${text}' >@WORK@/ds.json; \"$@\""
    ERROR "@WORK@/ds.json:1: ${error}")
endfunction()
deepspeed_refused("two types" [[{"bf16": {"enabled": true}, "fp16": {"enabled": true}}]]
  "fp16: is enabled beside bf16: DeepSpeed takes one of them")
deepspeed_refused("an unknown optimizer" [[{"optimizer": {"type": "AdmW"}}]]
  "optimizer.type: neither DeepSpeed nor torch.optim has an optimizer \"AdmW\" (did you mean \"AdamW\"?)")
deepspeed_refused("the class behind an optimizer" [[{"optimizer": {"type": "FusedAdam"}}]]
  "optimizer.type: neither DeepSpeed nor torch.optim has an optimizer \"FusedAdam\" (did you mean \"AdamW\"?)")
deepspeed_refused("a misspelt key" [[{"zero_optimisation": {"stage": 3}}]]
  "zero_optimisation: unknown key (did you mean \"zero_optimization\"?)")
deepspeed_refused("an old and a new name" [[{"zero_optimization": {"stage": 3, "cpu_offload": true, "offload_optimizer": {"device": "cpu"}}}]]
  "zero_optimization.cpu_offload: is an older name of offload_optimizer, which is there as well")
deepspeed_refused("a comment without end" [[{"steps_per_print": 1 /* x}]] "a comment is never closed")
deepspeed_refused("a bracket too few" [[{"a": [1,}]] "is no valid JSON: did not find expected node content")
