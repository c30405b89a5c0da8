# Cases of GRPO scenarios. How a case is written stands at the top of cases.cmake.
if(NOT COMMAND cli)
  return()
endif()
set(production run --full grpo-32b-production)

cli("grpo run" ARGS ${production}
  OUTPUT "20 learners, 20 engines of 2 GPUs, 20 GPUs idle.*step time +[0-9.]+ s in steady state.*bottleneck.*learner GPU.*fits")
cli("grpo run as JSON" ARGS ${production} --json
  KEYS step_time_s training_time_s sync_time_s learner_utilisation engine_utilisation mean_staleness max_staleness
       phase_wait_s memory/learner/sync_bytes bottleneck verdict warnings/0)
cli("grpo run of the template" ARGS run --full template-grpo OUTPUT "^My GRPO run: olmo-2-7b on 4 x gh200-4\n")
cli("grpo memory" ARGS memory grpo-32b-production OUTPUT "memory +start +training +sync +usable\n.*learner GPU.*fits\n$")
cli("grpo memory as JSON" ARGS memory grpo-32b-production --json KEYS verdict memory/engine/start_bytes memory/cache_tokens)
cli("grpo engine that cannot start" ARGS ${production} --set job.vllm_tensor_parallel_size=1 --set job.vllm_gpu_memory_utilization=0.55
  CODE 1 OUTPUT "does not fit: an engine cannot start: 56.7 GB of its 103 GB")
cli("grpo cache smaller than one sequence" ARGS ${production} --set job.vllm_tensor_parallel_size=1 --set job.vllm_gpu_memory_utilization=0.65
  CODE 1 OUTPUT "does not fit: an engine cannot start: its cache holds [0-9]+ tokens, a response may need 10240")
cli("grpo gather that does not fit" ARGS ${production} --set cluster.nodes=12 --set job.gather_whole_model=true CODE 1
  OUTPUT "does not fit: a learner that gathers the whole model for a sync needs")

# Every rule, with its reason.
function(refused name setting message)
  cli("grpo ${name}" ARGS ${production} ${setting} CODE 2 ERROR_MATCHES "(grpo-32b-production.yaml:([0-9]+:)?|--set:) job[^ ]*: ${message}")
endfunction()
refused("engine wider than a node" "--set;job.vllm_tensor_parallel_size=6"
  "6 GPUs of nodes that have 4: an engine of several nodes has whole ones")
refused("engine of heads that its GPUs do not share" "--set;job.vllm_tensor_parallel_size=3"
  "3 neither divides the 8 key-value heads of olmo-3-32b nor is a multiple of them")
refused("engine of nodes that learn" "--set;job.vllm_tensor_parallel_size=8" "no 2 nodes are left beside the learners")
refused("engine beside a learner" "--set;job.vllm_tensor_parallel_size=4" "no node has 4 GPUs left beside its learners")
refused("too many engines" "--set;job.vllm_num_engines=24" "24 engines of 2 GPUs: 20 find room")
refused("short packs" "--set;job.pack_length=10000" "10000 is shorter than a prompt and its response \\(2048 \\+ 8192\\)")
refused("indivisible hpz" "--set;job.deepspeed_zpg=8" "8 does not divide 20 learners \\(the default is 8\\)")
cli("grpo with fewer learners than the default partition" ARGS run --full @ROOT@/tests/cli/grpo-small.yaml --set job.num_learners_per_node=[4]
    --set job.deepspeed_zpg=null OUTPUT "note: job.deepspeed_zpg is not set: 4, as its default of 8 does not divide 4 learners")
refused("too few responses" "--set;job.num_unique_prompts_rollout=2" "2 x 8 responses are fewer than 20 learners: some would have none")
refused("more learners than GPUs" "--set;job.num_learners_per_node=[5]" "5 learners on a node of 4 GPUs")
refused("no learner" "--set;job.num_learners_per_node=[0]" "needs at least one learner")
cli("grpo uneven learners" ARGS ${production} "--set;job.num_learners_per_node=[4, 2]" CODE 1 OUTPUT "6 learners, 37 engines of 2 GPUs;.*does not fit")
refused("shared sequences of unequal shares" "--set;job.sequence_parallel_size=3" "3 does not divide 20 learners")
cli("grpo shared sequences" ARGS ${production} "--set;job.sequence_parallel_size=4" OUTPUT "20 learners, 4 to a sequence, 20 engines")
refused("longer list than nodes" "--set;job.num_learners_per_node=[1, 1];--set;cluster.nodes=1" "2 entries for 1 nodes")
refused("response longer than the model" "--set;job.response_length=70000;--set;job.pack_length=80000"
  "prompt and response of 72048 are longer than olmo-3-32b allows \\(65536\\)")
refused("active sampling in turn" "--set;job.active_sampling=true;--set;job.async_steps=1" "needs async_steps of 2 or more")
refused("colocated and ahead" "--set;job.layout=colocated" "layout: colocated has learners everywhere")
refused("a parked reference model that is not there" "--set;job.load_ref_policy=false;--set;job.park_reference=true"
  "load_ref_policy: false has no reference model")
cli("grpo interval of lengths that nobody published" ARGS ${production} --samples 2
  "--set;job.response_lengths.mean={value: 2500, low: 1000, high: 5000, grade: guess, source: nobody}" --json KEYS interval_s/1)
refused("parked beside engines" "--set;job.park_learners=true" "layout: separate keeps learners at work: false")
refused("adapters that are not there" "--set;job.sync_adapters=true" "strategy.lora says that there are adapters")
refused("a reward model without a critic" "--set;job.reward_model=true" "is modelled beside a critic: true")
refused("protocol that the framework has not" "--set;recipe=verl;--set;job.sync_protocol=v3"
  "v3 is not in verl's trainer, which has buckets, host_buckets")
set(in_turn "--set;job.async_steps=0;--set;job.inflight_updates=false")
refused("a part at a time, ahead" "--set;job.micro_rollout_batch_size=16" "needs async_steps: 0 and oversampling: 1")
refused("less than a group at a time" "${in_turn};--set;job.micro_rollout_batch_size=4" "4 are fewer than the 8 responses of a group")
refused("models alone without parts" "${in_turn};--set;job.reference_gpus=4;--set;job.load_ref_policy=true"
  "is modelled where rows are scored as they come: micro_rollout_batch_size above 0")
refused("a share that is no whole GPU" "--set;job.learner_gpus=0.33" "26.4 of 80 GPUs: expected whole ones, or a share that makes whole ones")
refused("too many GPUs for other models" "${in_turn};--set;job.micro_rollout_batch_size=8;--set;job.load_ref_policy=true;--set;job.reference_gpus=80"
  "80 GPUs for models of their own leave too few of 80 to learn")
refused("own weights beside learners" "--set;engine=transformers;${in_turn};--set;job.micro_rollout_batch_size=8"
  "transformers' generate generates with the learners' weights: colocated")
refused("calls of an engine" "${in_turn};--set;job.layout=colocated;--set;job.num_learners_per_node=null;--set;job.generate_calls=2"
  "is of learners that generate themselves, all rows of a call at a time: engine: transformers")
cli("grpo learners as a share" ARGS ${production} --set job.learner_gpus=0.2 --set job.num_learners_per_node=null
  OUTPUT "16 learners, 32 engines of 2 GPUs")
cli("grpo a part at a time" ARGS run --full ppo-70b --faster 0 OUTPUT "8 learners, 4 engines of 2 GPUs.*learners wait for a batch.*fits")
cli("grpo a slow engine" ARGS ${production} "--set;cluster.slow_gpus=[{rank: 1, speed: 0.5}, {rank: 2, speed: 0.5}]" OUTPUT "step time")
cli("grpo lengths of a file" ARGS run --full @ROOT@/tests/cli/grpo-small.yaml "--set;job.response_lengths={type: empirical, list: lengths.txt}"
  OUTPUT "step time")
cli("grpo lengths of a file that has words" ARGS run @ROOT@/tests/cli/grpo-small.yaml
  "--set;job.response_lengths={type: empirical, list: grpo-small.yaml}" CODE 2
  ERROR_MATCHES "grpo-small.yaml: expected lengths in tokens, one on each line, found \"#\"")
refused("more groups than are needed, ahead" "--set;job.oversampling=2" "needs async_steps: 0, as it stops engines in turn")
refused("rounds ahead" "--set;job.prompts_per_round=32" "needs async_steps: 0, as rounds are waited for")
refused("rounds that engines stop" "${in_turn};--set;job.prompts_per_round=32;--set;job.oversampling=2"
  "needs oversampling: 1 and micro_rollout_batch_size: 0, as all of a round is asked for at once and waited for")
refused("rounds without a filter" "${in_turn};--set;job.prompts_per_round=32;--set;job.filter_zero_std_samples=false"
  "needs filter_zero_std_samples: true, as rounds go on until groups have a signal")
cli("grpo in rounds" ARGS run --full @ROOT@/tests/cli/grpo-small.yaml ${in_turn} --set job.prompts_per_round=64 --set job.zero_std_fraction=0.4 --faster 0
  OUTPUT "responses a step, out of rounds of 64 prompts\n.*\nthrown away +0 % of the tokens as too old, [34][0-9] % in groups without a signal\ngiven up +[0-9]+ % of the tokens, in groups not done in time or too many\n")
cli("grpo engines that stay awake" ARGS memory colocated-8b --set job.vllm_sleep_level=0 --set job.vllm_gpu_memory_utilization=0.8 CODE 1
  OUTPUT "does not fit: engines stay awake while GPUs learn: 68.7 GB of an engine and [0-9.]+ GB of a learner at the peak of training are more than 84.1 GB usable; vllm_sleep_level 1 or 2 lets them sleep\n.*\njob.vllm_sleep_level: 1 ")
refused("parts of nothing" "--set;job.async_steps=0;--set;job.partial_rollouts=true" "needs oversampling above 1")
cli("grpo goodput of nodes that fail" ARGS ${production} "--set;job.failures.mtbf=6000 h"
  OUTPUT "goodput +9[0-9].[0-9] %[ \n]+of the time of a job whose parts fail once in 300 h:[ \n]+[0-9.]+ %[ \n]+writes[ \n]+a[ \n]+checkpoint[ \n]+every[ \n]+[0-9]+[ \n]+steps?,[ \n]+[0-9.]+ %[ \n]+is done again")
cli("grpo engines that fail" ARGS run --full @ROOT@/tests/cli/grpo-small.yaml "--set;job.failures.engine_mtbf=1 min" "--set;job.failures.engine_start=30 s" --faster 0
  OUTPUT "failures +of engines: [0-9]+ in the run, [0-9.]+[ \n]+expected[ \n]+in[ \n]+the[ \n]+steps[ \n]+measured; where[ \n]+none[ \n]+fails[ \n]+a[ \n]+step[ \n]+takes[ \n]+[0-9.]+ m?s")
cli("grpo engines that fail too seldom to be seen" ARGS run --full @ROOT@/tests/cli/grpo-small.yaml "--set;job.failures.engine_mtbf=1 h" --faster 0
  OUTPUT "failures +of engines: [01] in the run.*warning: 0.0[0-9]+ failures of engines are expected in the steps measured, which say little of what failures cost; job.measured_steps: [0-9]+ has 10")
cli("grpo goodput as JSON" ARGS ${production} "--set;job.failures.mtbf=6000 h" --json KEYS goodput saving_share lost_share down_share save_steps)
refused("misspelt key" "--set;job.vllm_tensor_paralel_size=2"
  "unknown key \\(did you mean \"vllm_tensor_parallel_size\"\\?\\)")
refused("misspelt protocol" "--set;job.sync_protocol=v4" "expected v1, v2, v3, buckets, host_buckets or files, found \"?v4")
cli("grpo misspelt engine" ARGS ${production} --set engine=vlm CODE 2 ERROR_MATCHES "engine: no engine \"vlm\" \\(did you mean \"vllm\"\\?\\)")
cli("show an engine" ARGS show vllm OUTPUT "\\(engine\\).*sync.call.*sources")
cli("grpo layout by its short name" ARGS ${production} "--set;job.learners_per_node=[4, 4]" OUTPUT "8 learners, 36 engines of 2 GPUs;")
cli("grpo trace" ARGS ${production} -o @WORK@/out/grpo.h5
  SHELL "mkdir -p @WORK@/out; \"$@\" >/dev/null && test -s @WORK@/out/grpo.h5; code=$?; rm -f @WORK@/out/grpo.h5; exit $code")
cli("grpo validate" ARGS validate @ROOT@/scenarios/seeds/grpo-32b-sync-packed.yaml
  @ROOT@/scenarios/seeds/grpo-32b-two-learners-oom.yaml OUTPUT "sync_time +95.0 s +94.. s +.0.. % +30 %: met.*2 of 2 memory verdicts are right\n1 of 1 figures are as near as their files ask for\n$")

# Draws, claims, and what a sweep keeps.
cli("grpo sweep after the learners' ds_config.json has changed" ARGS sweep own.yaml --vary cluster.nodes=2,3 -o s CODE 2
  SHELL "mkdir -p @WORK@/out/ds; cd @WORK@/out/ds
    config() { echo '{\"zero_optimization\": {\"stage\": 3, \"reduce_bucket_size\": '$1'}}' >ds_config.json; }
    sed 's/^strategy:.*/strategy: {deepspeed: ds_config.json}/' @ROOT@/tests/cli/grpo-small.yaml >own.yaml
    config 5e8; \"$@\" --shard 1/2 >/dev/null; config 1e8; \"$@\" --shard 2/2 >/dev/null
    @BUILD@/stepsim merge s.shard-1-of-2.h5 s.shard-2-of-2.h5; code=$?; rm -r @WORK@/out/ds; exit $code"
  ERROR "s.shard-2-of-2.h5: belongs to another sweep than s.shard-1-of-2.h5")
cli("grpo interval" ARGS ${production} --samples 4 OUTPUT "step time +[0-9.]+ s in steady state .* likely[ \n]+[^,]*, by 4[ \n]+draws[ \n]+of the constants")
cli("grpo interval as JSON" ARGS ${production} --samples 4 --json KEYS interval_s/1 max_staleness)
cli("grpo staleness and its bound" ARGS ${production} --set job.drop_stale_results=true
  OUTPUT "off-policy +[0-9.]+ steps on average, [0-4] at most \\(async_steps bounds it to 4\\)")
cli("grpo constants of an engine" ARGS ${production} --set engine.sync.call=20ms OUTPUT "step time")
# Layers that do not attend: a state of each sequence takes blocks of the cache.
set(states @ROOT@/tests/cli/grpo-small.yaml --set cluster.node=h200-8 --set job.num_learners_per_node=[8] --set job.vllm_tensor_parallel_size=2)
set(hybrid run --full ${states} --samples 0 --faster 0)
cli("grpo of a model with delta nets" ARGS ${hybrid} --set model=qwen3.5-4b OUTPUT "8 learners, 4 engines of 2 GPUs.*step time .*an engine's cache holds [0-9]+ tokens: [0-9]+ sequences of full length\nfits")
cli("grpo of a model with Mamba-2" ARGS ${hybrid} --set model=nemotron-nano-9b-v2 --set engine=sglang OUTPUT "step time .*fits")
cli("grpo of Qwen3-Next" HEAVY ARGS ${hybrid} --set model=qwen3-next-80b-a3b --set cluster.nodes=4 --set job.num_learners_per_node=[8,8,8] CODE 1 OUTPUT "an engine's cache holds 4520[0-9]+ tokens: 1384 sequences of full length\ndoes not fit: a learner")
cli("grpo states beside no response" ARGS ${hybrid} --set model=qwen3.5-9b --set job.vllm_gpu_memory_utilization=0.0678 CODE 1
  OUTPUT "does not fit: an engine cannot start: its cache holds [0-9]+ tokens, a response may need 1280, which with states take the place of 3168\n")
cli("grpo states of heads that GPUs do not share" ARGS ${hybrid} --set model=nemotron-3-nano-30b-a3b --set cluster.nodes=4
  --set job.vllm_tensor_parallel_size=16 CODE 2
  ERROR "--set: job.vllm_tensor_parallel_size: 16 does not divide the 8 groups of heads of Mamba-2 in nemotron-3-nano-30b-a3b")
cli("grpo sequences shared by learners of states" ARGS ${hybrid} --set model=qwen3.5-4b --set job.sequence_parallel_size=2 CODE 2
  ERROR "--set: job.sequence_parallel_size: is not modelled for qwen3.5-4b, whose layers do not all attend: gated delta net")
cli("grpo memory of a model with states" ARGS memory ${states} --set model=qwen3.5-4b OUTPUT "an engine's cache holds.*fits\n$")
cli("grpo sweep of a model with states" ARGS sweep ${states} --set model=qwen3.5-4b --vary job.response_length=512,1024 OUTPUT "2 fit|512")
cli("plan of a GRPO job with states" HEAVY ARGS plan @ROOT@/tests/cli/grpo-small.yaml --set model=qwen3.5-0.8b --set cluster.node=h200-8 --samples 0 --top 2
  OUTPUT "the fastest of [0-9]+ plans.*engines of")
cli("grpo of a NeMo-RL file of a model with Mamba-2" ARGS run --full @WORK@/own.yaml --samples 0 --faster 0
  SHELL "sed 's|Qwen/Qwen2.5-0.5B|nvidia/NVIDIA-Nemotron-Nano-9B-v2|' @ROOT@/tests/cli/settings/nemo.yaml >@WORK@/own.yaml; \"$@\""
  OUTPUT "nemotron-nano-9b-v2 on 1 x h100-8.*8 engines of 1 GPU, in turn on the same GPUs.*fits")
cli("grpo of a model with latent attention" HEAVY ARGS run --full ai2-olmo2-32b --set model=moonlight-16b-a3b --faster 0
  OUTPUT "step time .*an engine's cache holds 1438613 tokens: ")
cli("grpo misspelt constant of an engine" ARGS ${production} --set engine.sync.cal=20ms CODE 2 ERROR_MATCHES "no constant of this cluster or stack is called so")
cli("grpo sweep with intervals and the three moments" ARGS sweep @ROOT@/tests/cli/grpo-small.yaml --vary cluster.nodes=2,4 --samples 2 --json
  KEYS points/0/step_time_low_s points/1/step_time_high_s points/0/learner_memory_sync_bytes points/0/engine_memory_start_bytes
       points/0/host_memory_training_bytes points/1/start_up_s)
cli("grpo claim" ARGS check grpo-claim.yaml CODE 1 SHELL "cd @ROOT@/tests/cli && \"$@\""
  OUTPUT "supported +100 % .*engines-of-four-gpus-cannot-stand-there.*refuted +0 % .*steps-per-second.*bound by")
cli("check of the time of a grpo job that does not fit" HEAVY ARGS check "A takes over 1 s" grpo-32b-two-learners-oom --draws 1
  OUTPUT "supported .*A.step_time is ")
cli("a sync by Gloo inside one node" ARGS run --full grpo-tulu-8b-8h100 --set job.vllm_sync_backend=gloo --set "job.num_learners_per_node=[1]"
  --set job.vllm_num_engines=1 --set strategy.offload.optimizer=cpu --samples 0 --faster 0 OUTPUT "1 learner, 1 engine.*\nstep time +[0-9.]+")

# ---- what would make a job fit ----
cli("memory of a GRPO job says what would make it fit" ARGS memory grpo-32b-two-learners-oom CODE 1
  OUTPUT "does not fit: .*\n\nto make it fit, each alone +needed +verdict +step +tok/s/GPU\n")
cli("memory of a GRPO job that gathers too much" ARGS memory grpo-32b-packed --set job.gather_whole_model=true --set job.num_learners_per_node=[4] CODE 1
  OUTPUT "\nto make it fit, together +needed .*\njob.gather_whole_model: false, ")
cli("plan of a colocated job" ARGS plan grpo/colocated-8b --samples 0
  OUTPUT "the fastest of [0-9]+ plans is [0-9]+ engines? of [0-9]+ GPUs?[, :]")
cli("all that is known is tried where somebody asks for it" ARGS run grpo-32b-packed --faster 30 OUTPUT "\n\\([0-9]+ changes tried\\)\n$")
# Steps that train on nothing have no cost of a response.
cli("grpo steps that train on nothing" ARGS run @WORK@/own.yaml CODE 2
  SHELL "printf '%s\\n' 'name: drawn' 'model: llama-3.2-1b' 'stack: fsdp2-eager' 'cluster: {node: h100-8}' 'strategy: {}' 'job: {method: grpo, zero_std_fraction: 0.7986116409301758, response_length: 512, response_lengths: {mean: 256}, num_unique_prompts_rollout: 1, measured_steps: 4}' >@WORK@/own.yaml; \"$@\""
  ERROR_MATCHES "no response is trained on in the steps that are measured.*job.measured_steps")
