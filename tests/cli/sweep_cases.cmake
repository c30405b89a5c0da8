# Cases of sweep and merge. How a case is written stands at the top of cases.cmake.
if(NOT COMMAND cli)
  return()
endif()
set(small_sweep sweep llama32-3b-sft-zero3 --vary job.micro_batch=1,2 --vary strategy.zero=2,3)

cli("sweep" ARGS ${small_sweep}
  OUTPUT "4 points, 4 of them can run.*micro_batch  zero  GPUs  step time.*\nfastest .*\ncheapest ")
cli("sweep as JSON" ARGS ${small_sweep} --json
  KEYS points/0/job.micro_batch points/0/strategy.zero points/3/feasible points/0/reason points/0/step_time_s
       points/0/bottleneck fastest cheapest front/0 scalings what_ifs)
cli("the best point of a list may leave a key out" ARGS sweep @WORK@/leaves-out.yaml
  SHELL "printf 'scenario: llama32-3b-sft-zero3\\nlist:\\n  - {strategy.checkpointing: none, job.micro_batch: 1}\\n  - {strategy.checkpointing: full, strategy.optimizer: adamw}\\n' >@WORK@/leaves-out.yaml; \"$@\""
  OUTPUT "2 points, 2 of them can run.*fastest ")
cli("sweep as CSV" ARGS ${small_sweep} --csv OUTPUT "^job.micro_batch,strategy.zero,feasible,reason,bottleneck,gpus,step_time_s,")
cli("sweep whose points have prices of their own" ARGS sweep llama32-3b-sft-zero3 --vary cluster.node=h100-8,mi300x-8,t4-1 --price cheapest --budget-money 500 --csv
  SHELL "\"$@\" | cut -d, -f1,3 | head -1 && \"$@\" | tr , '\\n' | grep -cE '^(price|cost|cost_per_million_tokens|budget_tokens)$'" OUTPUT "^cluster.node,reason\n4\n$")
cli("sweep with a price" ARGS sweep llama32-3b-sft-zero3 --vary job.micro_batch=1,2 --price 2
  OUTPUT "a GPU-h  a Mtok  the job.*\ncheapest .* tok/s, [0-9.]+ GPU-h per million tokens for [0-9.]+\n")
cli("sweep with a price that nobody has" ARGS sweep llama32-3b-sft-zero3 --vary job.micro_batch=1,2 --price lambda CODE 2
  ERROR_MATCHES "--price: lambda has no on-demand price of mi300x; these have: [a-z]")
cli("sweep over machines with a price of nobody" ARGS sweep llama32-3b-sft-zero3 --vary cluster.node=h100-8 --price lamda CODE 2
  ERROR_MATCHES "no provider \"lamda\" \\(did you mean \"lambda\"\\?\\)")
cli("sweep with a budget and no price" ARGS ${small_sweep} --budget-money 500 CODE 2
  ERROR "--budget-money: needs a --price for a GPU and an hour")
cli("sweep over machine sizes" ARGS sweep llama32-3b-sft-zero3 --set cluster.network=roce-mi300x --vary cluster.nodes=1:4:*2
  OUTPUT "efficiency.*100 %.*from 8 to 32 GPUs .*weak scaling")
cli("a sweep keeps the batch over all GPUs" ARGS sweep llama32-3b-sft-zero3 --set "job={sequence: 2048, micro_batch: 2, global_batch: 64}"
  --set cluster.network=roce-mi300x --vary cluster.nodes=1,3 --csv
  OUTPUT "job.global_batch: 64 is no multiple of micro_batch 2 x 24 ranks = 48; the nearest are 48 and 96")
cli("sweep with points that cannot be"
  ARGS sweep llama33-70b-sft --vary strategy.zero=1,3 --vary strategy.tensor_parallel.size=1,3
  OUTPUT "out of memory: needs .* of .*, most of it .*strategy.tensor_parallel.size: 3 does not divide")
cli("sweep of which no point can be" ARGS sweep llama32-3b-sft-zero3 --vary strategy.tensor_parallel.size=3 CODE 1 OUTPUT "no point can run")
cli("sweep without a scenario" ARGS sweep CODE 2 ERROR_MATCHES "^stepsim: which scenario\\? usage: stepsim sweep ")
cli("sweep over nothing" ARGS sweep llama32-3b-sft-zero3 CODE 2
  ERROR "nothing is varied: --vary KEY=VALUES such as cluster.nodes=2:32")
cli("sweep over a misspelt key" ARGS sweep llama32-3b-sft-zero3 --vary job.micro_bach=1,2 -o out/r CODE 2
  ERROR "--set or --vary: job.micro_bach: unknown key (did you mean \"micro_batch\"?)")
cli("sweep over a misspelt name" ARGS sweep llama32-3b-sft-zero3 --vary model=llama-3.2-3b,lama-3.2-1b -o out/r CODE 2
  ERROR_MATCHES "model: no model \"lama-3.2-1b\" \\(did you mean \"llama-3.2-1b\"\\?\\)\n$")
cli("sweep over a word where a number belongs" ARGS sweep llama32-3b-sft-zero3 --vary job.micro_batch=1,two -o out/r CODE 2
  ERROR_MATCHES "job.micro_batch: expected a plain number, found \"two\"\n$")
cli("sweep with a condition that means nothing" ARGS ${small_sweep} --where "job.micro_batch > zero" CODE 2
  ERROR "where: nothing is called \"zero\" (did you mean \"strategy.zero\"?)\n  job.micro_batch > zero\n                  ^")
cli("sweep of a shard that is none" ARGS ${small_sweep} --shard 3/2 -o out/r CODE 2 ERROR "--shard: expected 1 to 2, found 3")
cli("sweep of a shard without a place" ARGS ${small_sweep} --shard 1/2 CODE 2
  ERROR "--shard: needs --output NAME, for merge to find the parts")
cli("sweep from a file" ARGS sweep @WORK@/out/s.yaml --json
  SHELL "printf 'scenario: llama32-3b-sft-zero3\\nvary: {job.micro_batch: [1, 2, 4]}\\nzip: {strategy.zero: [2, 3], job.epochs: [1, 2]}\\nwhere: [job.micro_batch * strategy.zero <= 6]\\n' >@WORK@/out/s.yaml
    \"$@\""
  KEYS points/3/job.epochs points/3/strategy.zero)
cli("sweep from a file with a misspelt key" ARGS sweep @WORK@/out/s.yaml CODE 2
  SHELL "printf 'scenario: llama32-3b-sft-zero3\\nvari: {job.micro_batch: [1]}\\n' >@WORK@/out/s.yaml; \"$@\"; code=$?; rm @WORK@/out/s.yaml; exit $code"
  ERROR "@WORK@/out/s.yaml:2: vari: unknown key (did you mean \"vary\"?)")

# ---- --find ----
set(seventy sweep llama33-70b-sft --set strategy.optimizer=adamw)
cli("find the largest micro-batch" ARGS ${seventy} --find "max job.micro_batch such that fits"
  OUTPUT "^max job.micro_batch such that fits: [0-9]+\nby bisection, [0-9]+ points\n.* yes .* no .*out of memory")
cli("find the smallest machine as JSON" ARGS sweep llama32-3b-sft-zero3 --set cluster.network=roce-mi300x --json
  --find "min cluster.nodes such that tokens_per_second > 150000" KEYS key goal method found points/0/holds points/0/step_time_s)
cli("find what comes and goes" ARGS sweep llama32-3b-sft-zero3 --vary job.micro_batch=1:6
  --find "max job.micro_batch such that step_time < 800 ms or step_time > 2 s and step_time < 2.5 s"
  OUTPUT ": 4\nit comes and goes, so all 6 values were tried\n")
cli("find what nothing meets" ARGS sweep llama32-3b-sft-zero3 --vary job.micro_batch=1:4
  --find "max job.micro_batch such that step_time < 1 us" CODE 1 OUTPUT ": none of the 3 values tried\n")
cli("find what holds to the end of the values" ARGS sweep llama32-3b-sft-zero3 --vary job.sequence=1024,2048
  --find "max job.sequence such that fits"
  OUTPUT ": at least 2048\nit holds at every one of 2 values up to 2048, where the values end; --vary job.sequence=2048:131072:\\*2 goes on\n")
cli("strong scaling of a training run" ARGS sweep llama32-3b-sft-zero3 --set cluster.network=roce-mi300x --zip cluster.nodes=1,2
  --zip job.gradient_accumulation=2,1 OUTPUT "efficiency.*100 %.*[0-9]+ %.*strong")
cli("find without a condition" ARGS sweep llama32-3b-sft-zero3 --find "max job.micro_batch" CODE 2
  ERROR "--find: expected \"max KEY such that CONDITION\" or \"min KEY such that CONDITION\", found \"max job.micro_batch\"")
cli("find with a misspelt metric" ARGS sweep llama32-3b-sft-zero3 --find "max job.micro_batch such that step_tim < 3 s" CODE 2
  ERROR "--find: nothing is called \"step_tim\" (did you mean \"step_time\"?)\n  step_tim < 3 s\n           ^")
cli("find without a unit" ARGS sweep llama32-3b-sft-zero3 --find "max job.micro_batch such that step_time < 3" CODE 2
  ERROR "--find: the unit is missing on the right: expected a time such as \"25 us\"\n  step_time < 3\n            ^")
cli("find with a misspelt key" ARGS sweep llama32-3b-sft-zero3 --find "max job.micro_bach such that fits" CODE 2
  ERROR_MATCHES "job.micro_bach: unknown key \\(did you mean \"micro_batch\"\\?\\)\n$")
cli("find over two keys" ARGS ${small_sweep} --find "max job.micro_batch such that fits" CODE 2
  ERROR "--find: searches job.micro_batch alone: --vary may only say its values")

# Equal bytes from one worker, from many, and from shards in any order.
cli("a sweep is the same whoever computes it" ARGS ${small_sweep}
  SHELL "set -e; cd @WORK@/out
    \"$@\" -o one --workers 1 >one.txt; \"$@\" -o many --workers 7 >many.txt
    for i in 1 2 3; do \"$@\" --shard $i/3 -o part >/dev/null; done
    @BUILD@/stepsim merge part.shard-3-of-3.h5 part.shard-1-of-3.h5 part.shard-2-of-3.h5 -o merged >merged.txt
    cmp one.txt many.txt; cmp one.txt merged.txt; for kind in csv h5; do cmp one.$kind many.$kind; cmp one.$kind merged.$kind; done
    ls | tr '\\n' ' '"
  OUTPUT "^many.csv many.h5 many.txt merged.csv merged.h5 merged.txt one.csv one.h5 one.txt part.shard-1-of-3.h5 part.shard-2-of-3.h5 part.shard-3-of-3.h5 $")
cli("merge of too few shards" ARGS ${small_sweep} CODE 2
  SHELL "cd @WORK@/out; \"$@\" --shard 2/3 -o p >/dev/null; @BUILD@/stepsim merge p.shard-2-of-3.h5; code=$?; rm p*; exit $code"
  ERROR "3 of 4 points are missing, point 0 first: name every shard")
cli("merge of the same shard twice" ARGS ${small_sweep} CODE 2
  SHELL "cd @WORK@/out; \"$@\" --shard 2/3 -o p >/dev/null; @BUILD@/stepsim merge p.shard-2-of-3.h5 p.shard-2-of-3.h5; code=$?; rm p*; exit $code"
  ERROR "p.shard-2-of-3.h5: has point 1, which p.shard-2-of-3.h5 has as well")
cli("merge of different sweeps" ARGS ${small_sweep} CODE 2
  SHELL "cd @WORK@/out; \"$@\" --shard 1/2 -o p >/dev/null; \"$@\" --set job.epochs=2 --shard 2/2 -o q >/dev/null
    @BUILD@/stepsim merge p.*.h5 q.*.h5; code=$?; rm p* q*; exit $code"
  ERROR "q.shard-2-of-2.h5: belongs to another sweep than p.shard-1-of-2.h5")
cli("merge of what is no sweep" ARGS merge @ROOT@/README.md CODE 2 ERROR "@ROOT@/README.md: is no sweep: not an HDF5 file")
cli("merge without shards" ARGS merge CODE 2 ERROR_MATCHES "^stepsim: which shards\\? usage: stepsim merge ")
cli("a journal of another sweep" ARGS ${small_sweep} -o out/r CODE 2
  SHELL "echo 'stepsim sweep 1 other' >@WORK@/out/r.journal; \"$@\"; code=$?; rm @WORK@/out/r.journal; exit $code"
  ERROR "out/r.journal: was left by another sweep: finish that one, or remove the file to start again")
cli("a journal of a later stepsim" ARGS ${small_sweep} -o out/r CODE 2
  SHELL "echo 'stepsim sweep 2 other' >@WORK@/out/r.journal; \"$@\"; code=$?; rm @WORK@/out/r.journal; exit $code"
  ERROR "out/r.journal: was left by a later stepsim: it is a journal of version 2, and this one writes version 1")
cli("a journal that is none" ARGS ${small_sweep} -o out/r CODE 2
  SHELL "echo 'my diary' >@WORK@/out/r.journal; \"$@\"; code=$?; rm @WORK@/out/r.journal; exit $code"
  ERROR "out/r.journal: is no journal of a sweep, and stays as it is: give this one another name with --output")
cli("a sweep where a run is expected" ARGS ${small_sweep} -o s CODE 2
  SHELL "cd @WORK@; \"$@\" >/dev/null || exit; \"$1\" export s.h5 --perfetto out/s.json"
  ERROR "s.h5: is a sweep, not a run")
cli("a run where a sweep is expected" ARGS run llama32-3b-sft-zero3 --samples 0 --faster 0 -o r.h5 CODE 2
  SHELL "cd @WORK@; \"$@\" >/dev/null || exit; \"$1\" merge r.h5 -o out/s"
  ERROR "r.h5: is a run, not a sweep")
cli("columns of a sweep carry units in the table of HDF5" ARGS ${small_sweep} -o s
  SHELL "cd @WORK@; \"$@\" >/dev/null || exit; ${STEPSIM_PYTHON} -c \"import h5py; points = h5py.File('s.h5')['points']; print(*[name + ':' + points[name].attrs['unit'].decode() for name in ('step_time', 'peak_memory')])\""
  OUTPUT "^step_time:s peak_memory:B\n$")

# Killed ten times, it goes on ten times; nothing is lost, computed twice differently, or left running.
cli("a killed sweep goes on where it was" SLOW ARGS sweep llama32-3b-sft-zero3 --vary job.micro_batch=1:120 --vary strategy.zero=2,3
  SHELL "cd @WORK@/out; \"$@\" -o whole >whole.txt || exit
    went_on=0; before=0
    for i in 1 2 3 4; do  # each is killed when its journal has grown a little
      setsid \"$@\" -o cut >/dev/null 2>&1 & victim=$!
      for try in $(seq 3000); do
        kill -0 $victim 2>/dev/null || break
        now=$(cat cut.journal 2>/dev/null | wc -l); [ $now -gt $((before + 2)) ] && break
        sleep 0.01
      done
      kill -9 $victim 2>/dev/null; wait $victim 2>/dev/null
      for try in $(seq 100); do left=$(ps -o stat= -s $victim | grep -cv ^Z); [ $left = 0 ] && break; sleep 0.05; done
      [ $left = 0 ] || { echo \"$left processes still run\"; exit 1; }
      [ -f cut.journal ] || break
      now=$(wc -l <cut.journal); [ $now -gt $before ] && [ $before -gt 0 ] && went_on=$((went_on + 1)); before=$now
    done
    \"$@\" -o cut >cut.txt || exit
    cmp whole.csv cut.csv && cmp whole.h5 cut.h5 && cmp whole.txt cut.txt && ls | tr '\\n' ' '; [ $went_on -gt 0 ] || echo 'no kill came in the middle'"
  OUTPUT "^cut.csv cut.h5 cut.txt whole.csv whole.h5 whole.txt $")

# The same as a job array of a real Slurm.
add_test(NAME "slurm/a sweep as a job array" COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/slurm/sweep_array.sh
  $<TARGET_FILE:stepsim> ${PROJECT_SOURCE_DIR}/cli/slurm/sweep.sbatch)
set_tests_properties("slurm/a sweep as a job array" PROPERTIES
  LABELS slurm SKIP_REGULAR_EXPRESSION "^skipped: " TIMEOUT 120)
cli("the job script outside an array" SHELL "bash @ROOT@/cli/slurm/sweep.sbatch" CODE 1
  ERROR_MATCHES "SLURM_ARRAY_TASK_ID: is not set: submit a job array")

# A model's own file is part of the question: with another one a journal or a shard belongs to another sweep.
cli("merge after a config.json has changed" ARGS sweep @WORK@/out/own/own.yaml --vary job.micro_batch=1,2 -o @WORK@/out/own/s CODE 2
  SHELL "mkdir -p @WORK@/out/own; cd @WORK@/out/own
    config() { echo '{\"architectures\": [\"LlamaForCausalLM\"], \"num_hidden_layers\": '$1', \"hidden_size\": 1024, \"intermediate_size\": 4096, \"num_attention_heads\": 8, \"num_key_value_heads\": 8, \"vocab_size\": 32000, \"max_position_embeddings\": 4096}' >config.json; }
    printf 'name: own\\nmodel: config.json\\ncluster: {node: h100-8}\\nstack: deepspeed-hf\\njob: {sequence: 1024}\\nstrategy: {zero: 3}\\n' >own.yaml
    config 4; \"$@\" --shard 1/2 >/dev/null; config 5; \"$@\" --shard 2/2 >/dev/null
    @BUILD@/stepsim merge s.shard-1-of-2.h5 s.shard-2-of-2.h5; code=$?; rm -r @WORK@/out/own; exit $code"
  ERROR "s.shard-2-of-2.h5: belongs to another sweep than s.shard-1-of-2.h5")

cli("sweep over folders that hold a config.json, and over a name of Hugging Face" ARGS sweep llama32-3b-sft-zero3
  --vary "model=@WORK@/out/two/a,@WORK@/out/two/b,Qwen/Qwen3-0.6B" -o @WORK@/out/two/s
  SHELL "for layers in 2 4; do name=a; [ $layers = 4 ] && name=b; mkdir -p @WORK@/out/two/$name
    echo '{\"architectures\": [\"LlamaForCausalLM\"], \"num_hidden_layers\": '$layers', \"hidden_size\": 1024, \"intermediate_size\": 4096, \"num_attention_heads\": 8, \"vocab_size\": 32000, \"max_position_embeddings\": 4096}' >@WORK@/out/two/$name/config.json; done
    \"$@\"; code=$?; rm -r @WORK@/out/two; exit $code"
  OUTPUT "two/a.*two/b.*Qwen/Qwen3-0.6B")
