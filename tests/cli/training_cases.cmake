# Cases of the commands that look at training runs: run, memory on scenarios, validate, list and show of scenarios.
# How a case is written stands at the top of cases.cmake.
if(NOT COMMAND cli)
  return()
endif()
set(seeds @ROOT@/scenarios/seeds)

# ---- run ----
foreach(model LiquidAI/LFM2-1.2B jamba-reasoning-3b granite-4.0-h-micro nemotron-nano-9b-v2)
  cli("run of layers that do not attend, ${model}" ARGS run --full llama32-3b-sft-zero3 --samples 0 --faster 0 --set model=${model}
    OUTPUT "step time +[0-9].*memory +[0-9.]+ GB of")
endforeach()
cli("tensor parallelism over short convolutions" ARGS run llama32-3b-sft-zero3 --set model=lfm2-1.2b
  --set "strategy.tensor_parallel={size: 2}" CODE 2
  ERROR "--set: strategy.tensor_parallel.size: is not modelled for lfm2-1.2b, whose layers do not all attend: short convolution")
cli("tensor parallelism over Mamba-2" ARGS run --full nemotron3-nano-tp2-ep8 --samples 0 --faster 0
  OUTPUT "16 ranks: data 8 x TP 2; experts: EP 8 x TP 1 x data 2\n\nstep time +[0-9]")
cli("tensor parallelism that does not divide heads of Mamba-2" ARGS run nemotron3-nano-tp2-ep8 --set strategy.tensor_parallel.size=16 CODE 2
  ERROR "--set: strategy.tensor_parallel.size: 16 does not divide 8 groups of heads of Mamba-2")
cli("adapters in stages" ARGS memory llama33-70b-pipeline --set "strategy.lora={rank: 32}" OUTPUT "fits.*stage [0-3], the fullest of 4 stages")
cli("sequences divided over short convolutions" ARGS run llama32-3b-sft-zero3 --set model=lfm2-1.2b
  --set "strategy.sequence_parallel={ulysses: 2}" CODE 2
  ERROR "--set: strategy.sequence_parallel.ulysses: is not modelled for lfm2-1.2b, whose layers do not all attend: short convolution")
# ---- heads of labels ----
set(reward @ROOT@/scenarios/seeds/phi4-14b-dpo-zero3.yaml --set job.method=reward)
cli("a reward model" ARGS run ${reward} --samples 0 --faster 0 --brief OUTPUT "a reward model \\(pairs\\), full training")
cli("a classifier says how many labels are taken" ARGS run ${reward} --set job.method=classify --samples 0 --faster 0 --brief OUTPUT "a classifier of texts \\(2 labels")
cli("a head without labels" ARGS run ${reward} --set job.labels=0 CODE 2 ERROR "--set: job.labels: expected a number from 1 to 1000000, found 0")
cli("a head of labels under tensor parallelism" ARGS run ${reward} --set "strategy.tensor_parallel={size: 2}" CODE 2
  ERROR "--set: strategy.tensor_parallel.size: is modelled with a head over the vocabulary of a decoder (method: sft, dpo, kto, grpo)")
# ---- encoders and towers ----
set(bert @ROOT@/scenarios/seeds/phi4-14b-sft-zero3.yaml --set model=bert-base --set job.sequence=512)
cli("an encoder learns masked words" ARGS run ${bert} --set job.method=mlm --samples 0 --faster 0 --brief OUTPUT "masked words, full training")
cli("an encoder compares texts" ARGS run ${bert} --set job.method=embed --set job.packing=false --samples 0 --faster 0 --brief
  OUTPUT "embeddings of 2 texts")
cli("an encoder writes no answers" ARGS run ${bert} CODE 2
  ERROR "@ROOT@/scenarios/seeds/phi4-14b-sft-zero3.yaml:7: job.method: sft: bert-base is an encoder, which writes no answers; expected mlm, embed, classify, classify_tokens or reward")
cli("a decoder has no masked words" ARGS run llama32-3b-sft-zero3 --set job.method=mlm CODE 2 ERROR "--set: job.method: mlm: llama-3.2-3b is no encoder; expected sft")
cli("a text alone is not compared" ARGS run ${bert} --set job.method=embed --set job.texts=1 CODE 2 ERROR "--set: job.texts: expected a number from 2 to 64, found 1")
set(sees @ROOT@/scenarios/seeds/phi4-14b-sft-zero3.yaml --set model=qwen2.5-vl-7b)
cli("a model that sees" ARGS run ${sees} --set job.images=2 --samples 0 --faster 0 --brief OUTPUT "fits|does not fit")
cli("images of a model that does not see" ARGS run phi4-14b-sft-zero3 --set job.images=1 CODE 2
  ERROR "--set: job.images: phi-4 has no tower for images that is modelled")
cli("images that do not fit into a row" ARGS run ${sees} --set job.images=2 --set job.pixels=16e6 CODE 2
  ERROR "--set: job.images: 32768 tokens of 2 images do not fit into a row of 8192")
cli("a negative number of images" ARGS run ${sees} --set job.images=-1 CODE 2 ERROR "--set: job.images: expected a number from 0 to 10000, found -1")
cli("an image without pixels" ARGS run ${sees} --set job.images=1 --set job.pixels=0 CODE 2 ERROR "--set: job.pixels: expected a number from 1 to 1000000000, found 0")
cli("a tower under tensor parallelism" ARGS run ${sees} --set job.images=1 --set "strategy.tensor_parallel={size: 2}" CODE 2
  ERROR "--set: strategy.tensor_parallel: is not modelled with a tower for images (job.images)")
cli("show of a model with a tower" ARGS show qwen2.5-vl-7b OUTPUT "8,292,166,656")
cli("a file of ai-toolkit" ARGS run @WORK@/own.yaml CODE 2
  SHELL "printf 'job: extension\\nconfig:\\n  process:\\n  - type: sd_trainer\\n' >@WORK@/own.yaml; \"$@\""
  ERROR_MATCHES "own.yaml:4: \"sd_trainer\" tells of a diffusion model: diffusion models are not modelled: a step of theirs")
cli("a diffusion model by its name" ARGS run phi4-14b-sft-zero3 --set model=black-forest-labs/FLUX.1-dev CODE 2
  ERROR_MATCHES "--set: model: \"black-forest-labs/FLUX.1-dev\" is FLUX, and diffusion models are not modelled: a step of theirs")
cli("a name of Hugging Face that leads nowhere" ARGS run llama32-3b-sft-zero3 --set model=nobody/Nothing-1B CODE 2
  SHELL "HF_HOME=/nowhere HF_HUB_CACHE= \"$@\""
  ERROR "--set: model: \"nobody/Nothing-1B\" is neither a model of the catalogue (`stepsim list models`), nor a folder or file here, nor in the local cache of Hugging Face (/nowhere/hub/models--nobody--Nothing-1B)")
cli("show by a name of Hugging Face" ARGS show meta-llama/Llama-3.1-8B-Instruct OUTPUT "^llama-3.1-8b \\(model\\)")
cli("show of constants of mixers" ARGS show mixers OUTPUT "scan_forward")
cli("run by file" ARGS run --full ${seeds}/llama32-3b-sft-zero3.yaml OUTPUT "step time +[0-9].*whole job.*memory .*: fits")
cli("run by name" ARGS run llama32-3b-sft-zero3 OUTPUT "^Llama-3.2-3B SFT")
cli("run by name with its folder, as JSON" ARGS run seeds/phi4-14b-dpo-zero3 --json
  KEYS step_time_s tokens_per_second_per_gpu wall_h peak_memory_bytes capacity_bytes verdict breakdown/0/cause)
cli("run of the template" ARGS run @ROOT@/scenarios/template.yaml OUTPUT "^My run.*fits")
cli("run that does not fit" ARGS run openrlhf-qwen3-30b-2x96-zero2-oom CODE 1 OUTPUT "does not fit, [0-9.]+ GB too much")
cli("modules that run again, by wrong names" ARGS run qwen3-30b-sft-zero2moe --set strategy.checkpointing=selective --set "strategy.recompute_modules=[moe_acts]" CODE 2
  ERROR "--set: strategy.recompute_modules: \"moe_acts\" is no module that can run again (did you mean \"moe_act\"?); there are core_attn, layernorm, moe_act, mla_up_proj, mlp, moe, shared_experts")
cli("modules that run again, without selective" ARGS run qwen3-30b-sft-zero2moe --set "strategy.recompute_modules=[moe_act]" CODE 2
  ERROR "--set: strategy.recompute_modules: is a choice of checkpointing: selective")
cli("run without a scenario" ARGS run CODE 2 ERROR_MATCHES "^stepsim: which scenario\\? usage: stepsim run ")
cli("run of a misspelt name" ARGS run llama32-3b-sft-zero4 CODE 2
  ERROR "no file and no scenario \"llama32-3b-sft-zero4\" (did you mean \"llama32-3b-sft-zero3\"?); `stepsim list scenarios` names them")
cli("run of a file that is not there" ARGS run nowhere.yaml CODE 2 ERROR_MATCHES "^stepsim: nowhere.yaml: ")
cli("run of a file with several mistakes" ARGS run @WORK@/out/run.yaml CODE 2
  SHELL "sed -e 's/micro_batch/micro_bach/' -e 's/^model:.*/model: phi4/' @ROOT@/scenarios/seeds/phi4-14b-sft-zero3.yaml >@WORK@/out/run.yaml
    \"$@\"; code=$?; rm @WORK@/out/run.yaml; exit $code"
  ERROR_MATCHES "run.yaml:3: model: no model \"phi4\" \\(did you mean \"phi-4\"\\?\\)\n.*job.micro_bach: unknown key \\(did you mean \"micro_batch\"\\?\\)\n$")
cli("run with a setting that DeepSpeed refuses" ARGS run qwen3-30b-sft-zero2moe --set strategy.zero=3 CODE 2
  ERROR_MATCHES "qwen3-30b-sft-zero2moe.yaml:[0-9]+: strategy.moe.expert_parallel: DeepSpeed's own expert parallelism works with zero: 1 or 2 only\n$")

cli("run that updates in the backward pass where gradients are shared" ARGS run phi4-14b-sft-zero3
  --set strategy.update_in_backward=true CODE 2
  ERROR_MATCHES "^stepsim: --set: strategy.update_in_backward: is modelled with zero: 0, one micro-batch and no offload of the optimizer\n$")

foreach(sharding 0 1 2 3 fsdp)
  cli("run on a single GPU, zero ${sharding}" ARGS run --full llama32-3b-sft-zero3 --samples 0 --faster 0 --set cluster.node=gh200-1
    --set strategy.zero=${sharding} --set strategy.optimizer=adamw_8bit OUTPUT "step time +[0-9].*memory")
endforeach()
cli("run with a free cause" ARGS run --full llama32-3b-sft-zero3 --samples 0 --ideal compute --ideal recompute
  OUTPUT "step time +[0-9.]+ ms .*module_hooks")
cli("run with a misspelt cause" ARGS run llama32-3b-sft-zero3 --ideal lunch CODE 2
  ERROR_MATCHES "^stepsim: --ideal: no cause \"lunch\" .did you mean \"launch\"\\?.; expected compute, recompute, launch, .* or other\n$")
cli("run with a free cause into a trace" ARGS run llama32-3b-sft-zero3 --ideal launch -o @WORK@/out/run.h5 CODE 2
  ERROR "--ideal: a step with free causes is no run to keep; leave out --output")
cli("run with a constant of the cluster" ARGS run llama32-3b-sft-zero3 --samples 0 --faster 0 --set cluster.xgmi.bandwidth=1GB/s
  OUTPUT "gather_bytes .* 2\\.[0-9]+ s\n")
cli("run with a misspelt constant" ARGS run llama32-3b-sft-zero3 --set cluster.xgmi.bandwith=1GB/s CODE 2
  ERROR "--set: cluster.xgmi.bandwith: no constant of this cluster or stack is called so (did you mean \"cluster.xgmi.bandwidth\"?); `stepsim show` of the GPU, node, network or stack lists them")
cli("run with an operator's count" ARGS run llama32-3b-sft-zero3 --samples 0 --faster 0 --set operators.norm.bytes=2000B
  OUTPUT "compute .* [0-9.]+ s\n")
cli("run with a misspelt operator" ARGS run llama32-3b-sft-zero3 --set operators.nrom.bytes=30B CODE 2
  ERROR "--set: operators.nrom.bytes: no constant of this cluster or stack is called so (did you mean \"operators.norm.bytes\"?); `stepsim show` of the GPU, node, network or stack lists them")
cli("run with an operator's count in a wrong unit" ARGS run llama32-3b-sft-zero3 --set operators.norm.bytes=30us CODE 2
  ERROR "--set: operators.norm.bytes: expected a size such as \"80 GB\", found a time (\"30us\")")
cli("run with a constant in a wrong unit" ARGS run llama32-3b-sft-zero3 --set stack.host.sync=3GB CODE 2
  ERROR "--set: stack.host.sync: expected a time such as \"25 us\", found a size (\"3GB\")")
cli("run with a constant that may be several" ARGS run llama32-3b-sft-zero3 --set gpu.bandwidth=3TB/s CODE 2
  ERROR "--set: gpu.bandwidth: may be gpu.gemm.bandwidth or gpu.elementwise.bandwidth")

cli("run with a constant above the peak of its GPU" ARGS run llama32-3b-sft-zero3 --set gpu.gemm.rate=10000TFLOP/s CODE 2
  ERROR "--set: gpu.gemm.rate: is above the bf16 peak")
cli("run with a block in which something is wrong" ARGS run llama32-3b-sft-zero3 --set "job.document_length={mean: 100000}" CODE 2
  ERROR "--set: job.document_length.mean: expected a number from 1 to 8192, found 100000")
cli("run with a misspelt way of folding" ARGS run llama32-3b-sft-zero3 --fold of CODE 2
  ERROR "--fold: expected auto or off, found \"of\" (did you mean \"off\"?)")
cli("run on more nodes than can be looked at" ARGS run llama32-3b-sft-zero3 --set cluster.nodes=8193 CODE 2
  ERROR "--set: cluster.nodes: expected a number from 1 to 8192, found 8193")
cli("run with a name that a terminal would obey" ARGS run llama32-3b-sft-zero3 --set "name=\"a\\e[31mb\"" CODE 2
  ERROR "--set: name: holds a control character")

# ---- what does not go together ----
cli("run with the stack of another vendor" ARGS run --full llama32-3b-sft-zero3 --samples 0 --faster 0 --set stack=deepspeed-hf
  OUTPUT "note: stack deepspeed-hf has the costs of a host of nvidia GPUs, and mi300x is of amd\n")
cli("run with a kernel that the GPU has not" ARGS run --full llama32-3b-sft-zero3 --samples 0 --faster 0 --set strategy.attention=flash3
  --set "cluster={node: a100-8}" --set stack=deepspeed-hf OUTPUT "note: a100-sxm-80 has no flash3 in its file: it is taken as flash\n")
cli("a kernel that one generation of AMD GPUs lacks" ARGS run --full llama32-3b-sft-zero3 --samples 0 --faster 0 --set strategy.attention=flash3
  --set "cluster={node: mi355x-8}" OUTPUT "note: mi355x has no flash3 in its file: it is taken as flash\n")
cli("a kernel that one generation of AMD GPUs has in its place" ARGS run --full llama32-3b-sft-zero3 --samples 0 --faster 0 --set strategy.attention=flash3
  --set "cluster={node: mi300x-8}" OUTPUT "note: mi300x has no FlashAttention-3: flash3 stands for AITER's assembly kernels\n")

# ---- a model by its path ----
cli("run with a path of two names that leads nowhere" ARGS run llama32-3b-sft-zero3 --set model=./meta-llama/Llama-3.1-8B CODE 2
  ERROR "--set: model: no file or folder \"./meta-llama/Llama-3.1-8B\", beside the scenario or here (did you mean \"llama-3.1-8b\"?)")
cli("run with a config.json that is not there" ARGS run llama32-3b-sft-zero3 --set model=none.json CODE 2
  ERROR "--set: model: no file or folder \"none.json\", beside the scenario or here")
cli("run with a folder without a model" ARGS run llama32-3b-sft-zero3 --set model=@WORK@/d CODE 2 SHELL "mkdir -p @WORK@/d; \"$@\""
  ERROR "--set: model: \"@WORK@/d\" is a folder without config.json")
set(tiny [[{"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 4, "hidden_size": 1024, "intermediate_size": 4096, "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 32000, "max_position_embeddings": 8192}]])
cli("run with the folder of a model beside the scenario" ARGS run --full @WORK@/own.yaml --samples 0 --faster 0
  SHELL "mkdir -p @WORK@/model; sed 's/^model:.*/model: model/' @ROOT@/scenarios/seeds/llama32-3b-sft-zero3.yaml >@WORK@/own.yaml
    printf '%s' '${tiny}' | sed 's/}$/, \"quantization_config\": {\"quant_method\": \"fp8\"}}/' >@WORK@/model/config.json; \"$@\""
  OUTPUT "note: quantization_config \\(fp8\\) of model is not modelled: its weights count 16 bits each\n")
cli("run with a switch of a model in quotes" ARGS run llama32-3b-sft-zero3 --set model=@WORK@/own.json CODE 2
  SHELL "printf '%s' '${tiny}' | sed 's/}$/, \"tie_word_embeddings\": \"false\"}/' >@WORK@/own.json; \"$@\""
  ERROR "@WORK@/own.json:1: tie_word_embeddings: expected true or false, found the text \"false\"")

# ---- what a scenario does not know ----
cli("run of what a scenario does not know" ARGS run --full llama32-3b-sft-zero3 --samples 8
  OUTPUT "whole job +[0-9.]+ h  .likely [0-9.]+ (h|min) to .*\nthe number of steps is moved most by .*\nscenario.job.fill +0.61 +0.5 +0.98 +guess +[0-9.]+ h to [0-9.]+ (h|min)\n")
cli("run says what a scenario does not know" ARGS run --full ring-mini-sft-zero3 --samples 0 --faster 0
  --set "job.micro_batch={value: 8, any_of: [4, 8], source: nobody says}"
  OUTPUT "\nnot known of this run .*\njob.micro_batch +8 +4 or 8\njob.fill +0.61 +0.5 to 0.98\n")
cli("run of 32-bit products on a GPU without a rate for them" ARGS run ring-mini-sft-1gpu-megablocks --set cluster.node=h100-8 CODE 2
  EDIT topology/gpus/h100-sxm.yaml
    "  fp32: {value: 67 TFLOP/s, low: 67 TFLOP/s, high: 67 TFLOP/s, grade: datasheet, source: \"NVIDIA H100 datasheet\"}" ""
  ERROR_MATCHES "megablocks.yaml:[0-9]+: strategy.moe.kernel: single_fp32: the file of h100-sxm has no peak.fp32\n$")
cli("run of a word that a scenario does not know" ARGS run --full llama32-3b-sft-zero3 --samples 8
    --set "strategy.checkpointing={value: full, any_of: [full, none], source: nobody says}"
  OUTPUT "scenario.strategy.checkpointing +full +full +none +guess ")
cli("run of a word that cannot be" ARGS run llama32-3b-sft-zero3 --set "strategy.zero={value: 3, any_of: [3, 4], source: nobody says}" CODE 2
  ERROR "--set: strategy.zero: expected 0, 1, 2, 3, fsdp or hsdp, found \"4\"")
cli("run of an unknown value that says nothing" ARGS run llama32-3b-sft-zero3 --set "job.fill={value: 0.5, source: nobody}" CODE 2
  ERROR "--set: job.fill: expected low and high, or any_of; what is known stands alone")
cli("validate with intervals" ARGS validate ${seeds}/phi4-14b-sft-zero3.yaml --samples 4
  OUTPUT "error +interval +holds it\n.*wall +14.8 h .* yes\n.*[0-9] of 3 figures are in their intervals\n$")
cli("validate with intervals, as JSON" ARGS validate ${seeds}/llama32-3b-dpo-zero3.yaml --samples 4 --json
  KEYS rows/0/interval/1 rows/0/inside_interval)

# ---- save and resume ----
cli("run that saves" ARGS run --full llama32-3b-sft-zero3 --samples 0 --faster 0 --set job.save.every=100
  OUTPUT "saving +every 100 steps: 25.8 GB in 26 files, 2.42 GB of states by each of 8 GPUs\n +training waits [0-9.]+ s each time, [0-9]+ times, [0-9.]+ % of the whole job")
cli("run that saves, as JSON" ARGS run llama32-3b-sft-zero3 --samples 0 --set job.save.every=100 --set job.resume.after=50 --json
  KEYS save/bytes save/weight_bytes save/state_bytes_per_rank save/files save/time_s save/count save/share_of_wall
       resume/bytes resume/skipped_micro_batches resume/time_s)
cli("run that is resumed in the third epoch" ARGS run --full mpt7b-zero3-offload --samples 0 --faster 0 --set job.epochs=3 --set job.resume.after=6000
    --set job.resume.skip=batches
  OUTPUT "rest of job .*resuming +after 6000 steps: reads [0-9.]+ GB, makes 8064 micro-batches again, ")
cli("memory of a run that saves" ARGS memory llama32-3b-sft-zero3 --set job.save.every=100 OUTPUT "\nsave +[0-9.]+ GB")
cli("run that saves nothing" ARGS run llama32-3b-sft-zero3 --set job.save.every=100 --set job.save.weights=false
    --set job.save.states=false CODE 2
  ERROR "--set: job.save.states: nothing is left to save: weights is false as well")
cli("run that saves without drives" ARGS run llama32-3b-sft-zero3 --set cluster.node=gh200-4 --set job.save.every=100 CODE 2
  ERROR "${seeds}/llama32-3b-sft-zero3.yaml: job.save: gh200-4 has no drives in its file")
cli("run that is resumed behind its end" ARGS run mpt7b-zero3-offload --set job.resume.after=6000 CODE 2
  ERROR "--set: job.resume.after: expected fewer than the 2748 optimizer steps of the run, found 6000")
cli("run that saves every so many epochs" ARGS run llama32-3b-sft-zero3 --set job.save.epochs=1 CODE 2
  ERROR_MATCHES "job.save.every: is missing")

cli("adapters beside a matrix that the model does not have" ARGS run llama32-3b-sft-zero3
  --set "strategy.lora={rank: 8, modules: [q_proj, q_porj]}" CODE 2
  ERROR "--set: strategy.lora.modules: llama-3.2-3b has no matrix \"q_porj\" (did you mean \"q_proj\"?); there are self_attn.q_proj, self_attn.k_proj, self_attn.v_proj, self_attn.o_proj, mlp.gate_proj, mlp.up_proj, mlp.down_proj")
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/mixers.yaml [[
name: adapters on attention in a model without attention
model:
  {architectures: [GraniteMoeHybridForCausalLM], num_hidden_layers: 1, hidden_size: 768, shared_intermediate_size: 2048,
   num_local_experts: 0, num_attention_heads: 12, num_key_value_heads: 4, vocab_size: 100352, max_position_embeddings: 32768,
   tie_word_embeddings: true, position_embedding_type: nope, layer_types: [mamba], mamba_n_heads: 48, mamba_d_head: 32,
   mamba_d_state: 128, mamba_n_groups: 1, mamba_d_conv: 4, mamba_expand: 2, mamba_chunk_size: 256, mamba_conv_bias: true,
   mamba_proj_bias: false}
stack: litgpt
cluster: {node: l40s-8}
job: {sequence: 128}
strategy: {zero: 1, lora: {rank: 8, targets: attention}}
]])
cli("adapters on attention where there is none" ARGS run ${CMAKE_CURRENT_BINARY_DIR}/mixers.yaml CODE 2
  ERROR "${CMAKE_CURRENT_BINARY_DIR}/mixers.yaml:11: strategy.lora.targets: attention gives no matrix of the model above an adapter; expected linear or all; there are mamba.in_proj, mamba.conv1d, mamba.out_proj, mlp.gate_up_proj, mlp.down_proj")
cli("adapters beside named matrices that the targets leave out" ARGS memory llama32-3b-sft-zero3
  --set "strategy.lora={rank: 8, targets: attention, modules: [up_proj, down_proj]}" CODE 2
  ERROR "--set: strategy.lora.targets: attention gives no matrix of llama-3.2-3b called up_proj or down_proj an adapter; expected linear or all; there are self_attn.q_proj, self_attn.k_proj, self_attn.v_proj, self_attn.o_proj, mlp.gate_proj, mlp.up_proj, mlp.down_proj")
cli("checkpoint of adapters beside experts that ranks share" ARGS run qwen3-30b-sft-zero2moe --set job.save.every=10
  --set "strategy.lora={rank: 8, targets: attention}" --samples 0 --faster 0 --json OUTPUT "\"save\": [{]\"bytes\": [0-9.]+, \"weight_bytes\": [0-9.]+,")

# ---- what does not fit is said at once ----
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/whole.yaml
  "name: whole\nmodel: qwen3-30b-a3b\nstack: deepspeed-hf\ncluster: {node: h100-8}\njob: {sequence: 4096}\nstrategy: {zero: 0}\n")
foreach(model qwen3-30b-a3b kimi-k2 deepseek-v3)
  cli("memory of a model far beyond it: ${model}" ARGS memory ${CMAKE_CURRENT_BINARY_DIR}/whole.yaml --brief --set model=${model} CODE 1
    SHELL "ulimit -t 5; \"$@\"" OUTPUT "[TG]B of 84.1 GB usable: does not fit")
endforeach()

# ---- draws of constants that hold each other ----
foreach(node h20-8 h20-8-141 mi325x-8 mi250x-8)
  cli("draws where more may be usable than a low capacity: ${node}" ARGS run llama32-3b-sft-zero3 --set cluster.node=${node}
    --set stack=deepspeed-hf --samples 4 --brief OUTPUT "a step \\(likely ")
endforeach()

# ---- offload, and parts that are slow ----
set(phi ${seeds}/phi4-14b-sft-zero3.yaml)
cli("run with everything on drives" ARGS run --full phi4-14b-sft-zero3 --samples 0 --faster 0 --set strategy.optimizer=adamw
    --set strategy.offload.optimizer=nvme --set strategy.offload.parameters=nvme --set strategy.offload.max_in_cpu=0
  OUTPUT "offload_transfer .*drives of a node: 264 GB")
cli("memory says by how much the drives are too small" ARGS memory phi4-14b-sft-zero3 --set strategy.optimizer=adamw
    --set strategy.offload.optimizer=nvme --set node.host.drive_capacity=100GB CODE 1
  OUTPUT "does not fit, [0-9.]+ GB too much for the drives of a node.*drives of a node: [0-9]+ GB of 100 GB")
cli("memory says what nvidia-smi shows" ARGS memory mpt7b-zero3-offload
  OUTPUT "nvidia-smi shows [0-9.]+ GB .[0-9.]+ GB to [0-9.]+ GB.: the allocator has [0-9.]+ GB for the [0-9.]+ GB that are used, and 966 MB are context")
cli("run with kernels of an update that an 8-bit optimizer has not" ARGS run phi4-14b-sft-zero3
    --set strategy.optimizer_kernels=foreach CODE 2
  ERROR "--set: strategy.optimizer_kernels: adamw_torch_8bit has kernels of its own")
cli("run with matrices that nobody shares" ARGS run phi4-14b-sft-zero3 --set strategy.matrix_updates=everywhere CODE 2
  ERROR "--set: strategy.matrix_updates: everywhere is a choice of muon with zero: fsdp or hsdp")
cli("run with kernels of an update that are not there" ARGS run phi4-14b-sft-zero3
    --set strategy.optimizer=adafactor --set strategy.optimizer_kernels=fused CODE 2
  ERROR "--set: strategy.optimizer_kernels: expected what adafactor has: single")
cli("run with an unknown optimizer" ARGS run phi4-14b-sft-zero3 --set strategy.optimizer=adamx CODE 2
  ERROR "--set: strategy.optimizer: no optimizer \"adamx\" (did you mean \"adamw\"?)")
cli("run with an optimizer that stays on the device" ARGS run phi4-14b-sft-zero3 --set strategy.optimizer=adafactor
    --set strategy.offload.optimizer=cpu CODE 2
  ERROR "--set: strategy.optimizer: adafactor is not modelled with its states on the host")
cli("run with whole matrices out of flat shards" ARGS run phi4-14b-sft-zero3 --set strategy.optimizer=muon --set strategy.zero=fsdp
    --set strategy.fsdp.version=1 CODE 2
  ERROR "--set: strategy.optimizer: muon updates whole matrices, and version 1 of fsdp has flat ones")
cli("run with moments that an optimizer has not" ARGS run phi4-14b-sft-zero3 --set strategy.optimizer=lion
    --set strategy.moment_dtype=bf16 CODE 2
  ERROR "--set: strategy.moment_dtype: lion has no moments in bf16")
foreach(optimizer sgd sgd_momentum lion lion_8bit adafactor muon)
  cli("run with ${optimizer}" ARGS run --full llama32-3b-sft-zero3 --samples 0 --faster 0 --set strategy.optimizer=${optimizer}
    OUTPUT "step time +[0-9].*memory")
endforeach()
cli("list optimizers" ARGS list optimizers OUTPUT "^optimizers\n.*  adamw +AdamW, and Adam\n.*  muon +Muon for matrices of layers")
cli("show an optimizer" ARGS show muon
  OUTPUT "^muon .optimizer.: Muon .*keeps 2 numbers.*orthogonal.iterations +5.00.*sources\n.*torch/optim/_muon.py")
cli("run with too few buffers for pipelining" ARGS run phi4-14b-sft-zero3 --set strategy.optimizer=adamw
    --set strategy.offload.optimizer=nvme --set strategy.offload.pipeline_read=true CODE 2
  ERROR "${phi}: strategy.offload.optimizer_buffers: expected at least 8: fp32 copy, two moments and gradient of each sub-group on its way, found 4")
cli("run with buffers that a tensor does not fit into" ARGS run phi4-14b-sft-zero3 --set strategy.offload.parameters=nvme
    --set strategy.offload.buffer_size=1e6 CODE 2
  ERROR "--set: strategy.offload.buffer_size: expected at least 64225280, a rank's part of the largest tensor, found 1000000")
cli("run with drives that are not there" ARGS run phi4-14b-sft-zero3 --set cluster.node=gh200-4 --set strategy.offload.parameters=nvme CODE 2
  ERROR "--set: strategy.offload.parameters: gh200-4 has no drives in its file")
cli("run with drives below stage 3" ARGS run phi4-14b-sft-zero3 --set strategy.zero=2 --set strategy.optimizer=adamw
    --set strategy.offload.optimizer=nvme CODE 2
  ERROR "--set: strategy.offload.optimizer: nvme needs zero: 3; below it DeepSpeed takes host memory instead: cpu")
cli("run with a part of an 8-bit optimizer on the host" ARGS run phi4-14b-sft-zero3 --set strategy.offload.optimizer=cpu
    --set strategy.offload.ratio=0.5 CODE 2
  ERROR "--set: strategy.offload.ratio: DeepSpeed updates both parts with AdamW: needs strategy.optimizer: adamw")
cli("memory offers the smallest part of the optimizer" ARGS memory phi4-14b-sft-zero3 --set cluster.node=h100-8 --set job.micro_batch=9
    --set strategy.optimizer=adamw --set strategy.zero_optimization.sub_group_size=1e8 CODE 1
  OUTPUT "strategy.offload.optimizer: cpu, strategy.offload.ratio: 0\\.[0-9]+ +[0-9.]+ GB +(fits|tight)")
cli("run with a slow GPU" ARGS run --full llama32-3b-sft-zero3 --samples 0 --faster 0 --set "cluster.slow_gpus=[{rank: 3, speed: 0.5}]"
  OUTPUT "step time +1[0-9]\\.[0-9] s")
cli("run with a GPU that is not there" ARGS run llama32-3b-sft-zero3 --set "cluster.slow_gpus=[{rank: 8, speed: 0.5}]" CODE 2
  ERROR_MATCHES "cluster.slow_gpus\\[0\\].rank: ")
cli("run with a slow link" ARGS run --full llama32-3b-sft-zero3 --samples 0 --faster 0 --set "cluster.slow_links=[{link: xgmi.gpu0>gpu1, share: 0.01}]"
  OUTPUT "step time +1[23]\\.[0-9] s")
cli("run with a link that is not there" ARGS run llama32-3b-sft-zero3 --set "cluster.slow_links=[{link: xgmi.gpu0>gpu9, share: 0.5}]" CODE 2
  ERROR_MATCHES "slow_links\\[0\\].link: no link \"xgmi.gpu0>gpu9\" .did you mean \"xgmi.gpu0>gpu[0-9]\"")
cli("run with GPUs that differ" ARGS run --full llama32-3b-sft-zero3 --samples 0 --faster 0 --set "cluster.vary={seed: 7}"
    --set variation.gpu_time=0.05 OUTPUT "step time +[89]\\.[0-9]+ s")

# ---- beside a real run ----
cli("run beside a progress bar" ARGS run llama32-3b-sft-zero3 --faster 0 --beside log
  SHELL "echo ' 12%|#2   | 143/1229 [20:15<2:33:00,  8.45s/it]' >log; \"$@\""
  OUTPUT "\nthe real run within the likely range. the prediction is [0-9] % too short\n +a progress bar: 143 of 1229 steps, full swing\n +8.50 s a step in the run, 8.[0-9]+ s predicted .likely [0-9.]+ s to [0-9.]+ s.\n +2.[0-9]+ h left at its pace, 2.[0-9]+ h as predicted\n")
cli("run beside a slower run of another length" ARGS run llama32-3b-sft-zero3 --faster 0 --beside -
  SHELL "echo '5/600 [01:40<3:18:20, 20.00s/it]' | \"$@\""
  OUTPUT "\nthe real run outside the likely range. the prediction is [0-9]+ % too short. first steps are slower than later ones, look again after ten\n.*the run makes 600 steps, the scenario 1229: batch, data or epochs differ\n")
cli("run beside a log as JSON" ARGS run llama32-3b-sft-zero3 --samples 2 --beside log --json
  SHELL "echo '143/1229 [20:15<2:33:00,  8.45s/it]' >log; \"$@\"" KEYS beside/phase beside/seen_s beside/predicted_s beside/error beside/inside)
cli("run beside what is no log" ARGS run llama32-3b-sft-zero3 --beside @ROOT@/LICENSE CODE 2
  ERROR_MATCHES "LICENSE: holds no progress of a training: expected a line of a progress bar such as ")
cli("run beside a log without an end" ARGS run @ROOT@/tests/cli/tiny.yaml --samples 0 --beside /dev/zero CODE 2
  ERROR "/dev/zero: is larger than 256 MiB: give the end of it")
cli("GRPO job beside a log" ARGS run @ROOT@/tests/cli/grpo-small.yaml --beside log CODE 2
  ERROR "--beside: logs of GRPO jobs are not read, leave it out")

# ---- check in one line ----
cli("check of a sentence" HEAVY ARGS check "A is at least 3x faster than B" llama32-3b-sft-zero3 --set job.sequence=2048 --draws 8 CODE 1
  OUTPUT "^refuted +0 % of 8 draws +A is at least 3x faster than B\n  no: [0-9.]+, likely [0-9.]+ to [0-9.]+. it holds in 0 of 8 draws of the constants\n  -> A.tokens_per_second / B.tokens_per_second is ")
cli("check of one GPU against another" HEAVY ARGS check "A is at least 1.2x faster than B" qwen3-0.6b-4x2048 --set cluster.node=a100-8 --draws 8
  OUTPUT "supported +100 % of 8 draws.*A is .*moved most by")
cli("import with another machine than the file's, twice" ARGS import @WORK@/own.sh --cluster h100-8 --nodes 5 --set cluster.nodes=4
  SHELL "printf 'python open_instruct/grpo_fast.py --model_name_or_path Qwen/Qwen2.5-7B --response_length 512 --pack_length 1024 --num_learners_per_node 8 8 --vllm_num_engines 8\\n' >@WORK@/own.sh; \"$@\""
  OUTPUT "\ncluster: .node: h100-8, nodes: 4. ")
cli("check of a GPU whose capacity a rule holds" HEAVY ARGS check "A is slower than B" qwen3-0.6b-4x2048 --set cluster.node=b200-8 --draws 8
  OUTPUT "supported +100 % of 8 draws")
cli("check of another program's file" HEAVY ARGS check "A fits" @ROOT@/tests/cli/axolotl/small-sft.8xMI300.yaml --nodes 1 --draws 8
  OUTPUT "^not in the file.*taken.*supported")
cli("check of a sentence in a line" HEAVY ARGS check "A fits" mpt7b-zero2 --draws 8 --brief OUTPUT "^yes: it holds in 8 of 8 draws of the constants\nA: taken: [^\n]+\n$")
cli("check of a sentence about A alone, with a change" HEAVY ARGS check "A takes under 1 ms" llama32-3b-sft-zero3 --set job.sequence=2048 --draws 1 CODE 1
  OUTPUT "-> A.step_time is 1[.0-9]+ s ")
cli("check of a change that the sentence is not about" ARGS check "A fits" llama32-3b-sft-zero3 llama32-3b-sft-zero3 --set job.sequence=2048 CODE 2
  ERROR "--set changes B, of which \"A fits\" says nothing")
cli("check of what is not modelled" HEAVY ARGS check "B is 2x faster than A" @ROOT@/tests/cli/axolotl/small-sft.8xMI300.yaml --nodes 1 --set adapter=lora --set lora_r=8 --set unsloth_lora_mlp=true --draws 1 CODE 1
  OUTPUT "note: A and B differ in what is not modelled: unsloth_lora_mlp .not in A, true in B.: adapters in one kernel.*undecided .*but hangs on what is not.+modelled: unsloth_lora_mlp")
cli("check of a sentence without scenarios" ARGS check "A fits" CODE 2
  ERROR "\"A fits\": which scenarios? name them behind the sentence")
cli("check of a file with a setting" ARGS check --set strategy.zero=2 CODE 2
  ERROR "--set, --price and what says machine or model belong to a sentence such as \"A fits\"; a file of claims has `set` of its own")

# ---- what to do next ----
cli("run says what would make it faster" ARGS run --full llama32-3b-sft-zero3 --samples 0 --faster 2
  OUTPUT "\nfaster, each alone +step +tok/s +memory\n[- ]+\n[^\n]+ s +\\+[0-9.]+ % +[0-9.]+ GB\n[^\n]+\n[(][0-9]+ (of [0-9]+ )?changes tried[^\n]*[)]\n$")
cli("run without what would make it faster" ARGS run --full llama32-3b-sft-zero3 --samples 0 --faster 0 OUTPUT "\nnote: [0-9]+ of the constants behind this are guesses\n\nplayed by SimGrid [^\n]+\n$")
cli("run says what would make it faster as JSON" ARGS run llama32-3b-sft-zero3 --samples 0 --faster 1 --json
  KEYS faster/changes/0/change faster/changes/0/gain faster/changes/0/peak_memory_bytes faster/tried)
cli("run of what does not fit says so first, and what would make it fit" ARGS run --full mpt7b-zero2-oom --samples 0
  CODE 1 OUTPUT "\n\nverdict +does not fit into memory: it cannot run; times are as if it could\nstep time .*to make it fit, each alone +needed +verdict +step +tok/s/GPU\n[- ]+\nstrategy.zero: 3 ")
cli("run in a line" ARGS run llama32-3b-sft-zero3 --brief OUTPUT "^8.[0-9]+ s a step [(]likely [0-9.]+ s to [0-9.]+ s[)], [0-9]+ tok/s/GPU, [0-9.]+ h the whole job. 46.4 GB of 204 GB usable: fits in [^\n]+\ntaken: full training; 16 rows x 1 x 8 GPUs of 8192 tokens packed, [^\n]+\n$")
cli("run of another program's file in a line, and what was taken for it" ARGS run @ROOT@/tests/cli/axolotl/small-sft.8xMI300.yaml --nodes 1 --samples 0 --brief
  OUTPUT "^[^\n]+ a step, [^\n]+: fits[^\n]*\ntaken: full training; [^\n]*\nnot modelled: neftune_noise_alpha [(]noise [^\n]*\nassumed: model [^\n]*, size of the data set [^\n]*\n$")
cli("run in a line and as JSON" ARGS run llama32-3b-sft-zero3 --brief --json CODE 2
  ERROR "--brief and --json: only one of them can be printed")
cli("run with a price and a power" ARGS run llama32-3b-sft-zero3 --samples 0 --brief --price 2 --power 1200
  OUTPUT "\ncost +2[0-9.]+ GPU-hours, 4[0-9.]+ at 2 each, 2[0-9.]+ kWh at 1200 W a GPU. 5[0-9.]+ for 1e9 tokens\n$")
cli("run with a price as JSON" ARGS run llama32-3b-sft-zero3 --samples 0 --price 2 --json KEYS cost/of cost/gpu_hours cost/price)
cli("run says in a line what energy a step and the job take" ARGS run --full llama32-3b-sft-zero3 --samples 0
  OUTPUT "\nenergy +[0-9.]+ [kM]J a step: GPUs [0-9]+ %, hosts [0-9]+ %. [0-9.]+ kWh the whole job\n")
cli("run says that SimGrid's plugins find the same energy" ARGS run --full llama33-70b-pipeline --samples 0 --energy
  OUTPUT "\nplayed by SimGrid [0-9.]+; the engine of our own finds the same[^;]*; SimGrid's plugins find the same energy[^;]*\n$")
cli("run says in JSON how far SimGrid's plugins agree" ARGS run llama33-70b-pipeline --samples 0 --energy --json KEYS engine/energy_difference)
cli("run says by cause where the energy goes" ARGS run llama32-3b-sft-zero3 --samples 0 --energy
  OUTPUT "\nwhere the energy goes +energy +share +GPUs +hosts +network\n[- ]+\ncompute +[0-9.]+ [Mk]J +[0-9.]+ %.*\nidle ")
cli("run with a power of its own says no other" ARGS run llama32-3b-sft-zero3 --samples 0 --power 1200
  SHELL "\"$@\" >said; grep -c '^energy' said; grep -c 'kWh at 1200 W a GPU' said" OUTPUT "^0\n1\n$")
cli("run says energy and its ranges as JSON" ARGS run llama32-3b-sft-zero3 --samples 2 --json
  KEYS energy/step_j energy/step_interval_j energy/gpus_j energy/hosts_j energy/network_j energy/standing_w energy/job_kwh
    energy/job_interval_kwh energy/by_cause/0/cause energy/by_cause/0/gpus_j)
cli("validate holds whole runs against their measured energy" ARGS validate @ROOT@/scenarios/measured/energy
  OUTPUT "olmo-7b-a100 +job_energy +374 GJ [^\n]*%")
cli("run with a price that is none" ARGS run llama32-3b-sft-zero3 --price cheap CODE 2
  ERROR "--price: expected money for a GPU and an hour, a provider, or cheapest; no provider \"cheap\"; `stepsim list prices` names them")
cli("run with a price that a provider has" ARGS run llama32-3b-sft-zero3 --samples 0 --brief --cluster h100-8 --price lambda --budget-money 500
  OUTPUT "at 3.99 each \\(lambda on-demand, 2026-09-20\\).*500 buys 125 GPU-hours, 15.7 h: [0-9]+ steps, [0-9.e+]+ tokens")
cli("run with the cheapest price" ARGS run llama32-3b-sft-zero3 --samples 0 --cluster h100-8 --price cheapest:spot --json KEYS cost/offer)
cli("run with a provider who has no such card" ARGS run llama32-3b-sft-zero3 --cluster mi300x-8 --price lambda CODE 2
  ERROR "--price: lambda has no on-demand price of mi300x; these have: azure, crusoe, digitalocean, oci, tensorwave, vultr")
cli("run with a budget and no price" ARGS run llama32-3b-sft-zero3 --budget-money 500 CODE 2
  ERROR "--budget-money: needs a --price for a GPU and an hour")
cli("list prices" ARGS list prices OUTPUT "lambda +Lambda")
cli("memory says what each change costs in time" ARGS memory mpt7b-zero2-oom CODE 1
  OUTPUT "\nto make it fit, each alone +needed +verdict +step +tok/s/GPU\n[- ]+\nstrategy.zero: 3 +67.3 GB +fits +1.26 s +1623\n.*\nor more nodes +needed.*\ncluster.nodes: 2 ")
cli("memory names pairs of changes where no single one is enough" ARGS memory llama32-3b-sft-zero3 --set model=llama-3.1-8b
    --set cluster.node=h100-2 --set strategy.zero=2 --set strategy.checkpointing=none --set job.micro_batch=16 CODE 1
  OUTPUT "no single change that is known here makes it fit\n\nto make it fit, together +needed +verdict +step +tok/s/GPU\n[- ]+\n[a-z_.]+: [a-z0-9]+, [a-z_.]+: ")
set(keeps_whole "printf 'base_model: meta-llama/Llama-3.1-8B\\nadapter: lora\\nlora_r: 16\\nlora_target_linear: true\\nlora_modules_to_save: [gate]\\nsequence_len: 4096\\nmicro_batch_size: 1\\n' >own.yaml; \"$@\"")
cli("memory says what of a file is not modelled" ARGS memory own.yaml --cluster h100-8 SHELL "${keeps_whole}"
  OUTPUT "\nnot modelled +lora_modules_to_save ")
cli("memory in a line, and what was taken for the file" ARGS memory own.yaml --cluster h100-8 --brief SHELL "${keeps_whole}"
  OUTPUT " usable: without lora_modules_to_save, not modelled and in need of more: fits in [^\n]*\ntaken: LoRA, rank 16 on 7 matrices; [^\n]*\nnot modelled: lora_modules_to_save [^\n]*\nassumed: model [^\n]*\n$")
cli("plan says what of a file is not modelled" ARGS plan own.yaml --cluster h100-8 --samples 0 --top 1 SHELL "${keeps_whole}"
  OUTPUT " were replayed[^$]*\n\nnote: own.yaml: lora_modules_to_save [^\n]*: not modelled; the result is without it\n\nthe first plan: played by [^\n]+\n$")
cli("memory that does not fit says nothing of nvidia-smi" ARGS memory mpt7b-zero2-oom CODE 1
  SHELL "\"$@\" >said; code=$?; grep -c 'does not fit' said; grep -c 'smi shows' said; exit $code" OUTPUT "^[1-9][0-9]*\n0\n$")
cli("memory in a line" ARGS memory mpt7b-zero2-oom --brief CODE 1 OUTPUT "^[0-9.]+ GB of 84.1 GB usable: does not fit, [^\n]+\ntaken: [^\n]+\n$")

# ---- explain ----
cli("explain" ARGS explain llama32-3b-sft-zero3 --set strategy.zero=2 --replays 1
  --samples 8
  OUTPUT "A takes [0-9.]+ ms longer than B.*cause +exposed in A +exposed in B +of the gap +share +8 of 10 draws.*gap +.*100.0 % .*A is slower in all of 8 draws.*gap is moved most by.*made of .*A waits for.*they first differ in")
cli("explain finds a slow GPU" SLOW ARGS explain llama32-3b-sft-zero3 --replays 1 --samples 0
    --set "cluster.slow_gpus=[{rank: 3, speed: 0.8}]" OUTPUT "above all in compute .*\n-[- ]+\ncompute +[0-9. m]+s +[0-9. m]+s +-[0-9.]+ s +[5-9][0-9]\\.[0-9] %.*\nrecompute +")
cli("explain finds a slow link" SLOW ARGS explain qwen3-30b-sft-zero2moe --replays 1 --samples 0
    --set "cluster.slow_links=[{link: xgmi.gpu0>gpu1, share: 0.5}]" OUTPUT "\n-[- ]+\nmoe_all_to_all +[0-9. m]+s +[0-9. m]+s +-[0-9.]+ s +(9[0-9]|100)\\.[0-9] %")
cli("explain names a constant that only one side leaves open" SLOW ARGS explain llama32-3b-sft-zero3 --replays 1 --samples 1
    --set stack.unexplained=1.2 OUTPUT "moved most by[^\n]*\n[- ]+\nstack.unexplained")
cli("explain as JSON" SLOW ARGS explain mpt7b-zero2-oom llama32-3b-sft-zero3 --replays 1 --samples 2 --json
  KEYS a/step_time_interval_s/1 a/tokens_per_second_per_gpu_interval/1 b/peak_memory_interval_bytes/1 rows/0/interval_s/1
       draws/made draws/most draws/a_slower draws/gap_interval_s/0 draws/moved_most_by/0/gap_at_low_s a/step_time_s b/step_time_s rows/0/cause rows/0/seconds rows/0/counterfactual_s rows/0/constants
       a/critical_path/0/part not_equal/0 does_not_fit/0 gap_s)
cli("explain as CSV" ARGS explain mpt7b-zero2 --set job.micro_batch=2 --replays 1 --samples 2 --csv
  OUTPUT "^cause,seconds,counterfactual_s,[a-z_,]*,low_s,high_s\n[a-z_]+,[^\n]*,[-0-9.e]+,[-0-9.e]+\n")
cli("explain at each one's memory limit" SLOW ARGS explain mpt7b-zero2 --set strategy.zero=3 --replays 1 --samples 0 --each-at-limit
  OUTPUT "memory limit .*A fits with no micro-batch|A [0-9]+ tok/s/GPU with a micro-batch of")
cli("explain of two traces" ARGS explain a.h5 b.h5 --replays 1 --samples 1 --csv
  SHELL "\"$1\" run mpt7b-zero2 --samples 0 -o a.h5 >/dev/null; \"$1\" run llama32-3b-sft-zero3 --samples 0 --set strategy.zero=2 -o b.h5 >/dev/null
    \"$@\" >traces.csv
    \"$1\" explain mpt7b-zero2 llama32-3b-sft-zero3 --set strategy.zero=2 --replays 1 --samples 1 --csv | diff - traces.csv && echo the same"
  OUTPUT "^the same\n$")
cli("explain of a trace of something else" ARGS explain a.h5 mpt7b-zero2 CODE 2
  SHELL "\"$1\" collective all_reduce --cluster mi300x-8 --sizes 1MiB -o a.h5 >/dev/null; \"$@\""
  ERROR "a.h5: is a trace of something else than a scenario's step")
cli("explain between equal steps" ARGS explain mpt7b-zero2 mpt7b-zero2 --replays 1 --samples 2 --csv
  OUTPUT "^[^\n]*(\n[a-z_]+,0,[^\n]*,0,0)+\n$")
cli("explain of two GRPO jobs at their limits" ARGS explain grpo-7b-two-nodes grpo-7b-two-nodes --each-at-limit CODE 2
  ERROR "--each-at-limit: a GRPO job has packs instead of micro-batches; grpo.pack_length with `stepsim sweep --find` looks for the longest that fits")
cli("explain without a second step" ARGS explain mpt7b-zero2 CODE 2
  ERROR "compared with what? name a second scenario, or change this one with --set")
cli("explain as two forms at once" ARGS explain mpt7b-zero2 mpt7b-zero3-offload --csv --json CODE 2
  ERROR "--csv and --json: only one of them can be printed")

if(STEPSIM_PYTHON)
  add_test(NAME cli/explain-tells-one-story COMMAND ${STEPSIM_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/check_explain.py
    $<TARGET_FILE:stepsim> ${CMAKE_CURRENT_BINARY_DIR}/cli/explain_story)
  set_tests_properties(cli/explain-tells-one-story PROPERTIES LABELS "cli;slow;heavy")
  foreach(name ended progress)
    add_test(NAME cli/studies_${name} COMMAND ${STEPSIM_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/check_${name}.py
      $<TARGET_FILE:stepsim> ${CMAKE_CURRENT_BINARY_DIR}/studies_${name})
    set_tests_properties(cli/studies_${name} PROPERTIES LABELS "cli;slow")
  endforeach()
endif()
cli("explain of two GRPO jobs" HEAVY ARGS explain @ROOT@/tests/cli/grpo-small.yaml --set engine.kernels.cache=0.3 --replays 1 --samples 0 --csv
  OUTPUT "\ngeneration,-[0-9.]+,")

# ---- check ----
cli("check of a file without claims" ARGS check @WORK@/none.yaml CODE 2 SHELL "echo 'claims: []' >@WORK@/none.yaml; \"$@\""
  ERROR "@WORK@/none.yaml:1: claims: no claims stand here")
set(claims @WORK@/claims.yaml)
# claims(BODY): writes a file of one claim about two scenarios before the command runs.
function(claim_case name body)
  cli("${name}" ARGS check ${claims} ${ARGN}
    SHELL "cat >@WORK@/claims.yaml <<'end'
claims:
  - id: a
    text: two steps
    scenarios: {fast: llama32-3b-sft-zero3, slow: {from: llama32-3b-sft-zero3, set: {gpu.gemm.rate: 150 TFLOP/s}}}
${body}
end
\"$@\"")
endfunction()
claim_case("check of a claim that holds" "    holds: [{ratio: [slow.step_time, fast.step_time], at_least: 1.5}]"
  --draws 8 OUTPUT "supported +100 % of 8 draws  a\n.*slow.step_time / fast.step_time is [2-4].*bound by compute on the GPU.*moved most by.*1 supported, 0 refuted" SLOW)
claim_case("check of a claim that does not hold, as JSON" "    holds: [{value: fast.peak_memory, at_most: 1 GB}]"
  --draws 8 --json CODE 1 KEYS claims/0/id claims/0/verdict claims/0/probability claims/0/reason
    claims/0/conditions/0/draws claims/0/moved_most_by)
claim_case("check of a claim that depends" "    holds: [{ratio: [slow.step_time, fast.step_time], at_least: 1.5}]
    vary: [{name: with the same GPU, of: [slow], set: {gpu.gemm.rate: 680 TFLOP/s}}]"
  --draws 8 CODE 1 OUTPUT "depends.*it fails")
claim_case("check of a mistaken claim" "    holds:
      - {value: fast.step_tim, at_most: 1 s}
      - {value: fats.step_time, at_most: 1 s}
      - {ratio: [fast.step_time, slow.peak_memory], at_most: 1}
      - {value: fast.step_time, at_most: 1 GB}
      - {value: fast.step_time, at_least: 3 s, at_most: 2 s}
      - {closes: {between: [slow, fast], free: [computer]}, at_least: 0.5}
      - {ratio: [slow.step_time, fast.step_time], at_least: 2}
      - {ratio: [slow.step_time, fast.step_time], at_most: 1.5}
      - {ratio: [slow.step_time, fast.step_time], about: 1, tolerance: 0.2}"
  CODE 2
  ERROR "@WORK@/claims.yaml:6: claims[0].holds[0].value: no metric \"step_tim\" (did you mean \"step_time\"?)
@WORK@/claims.yaml:7: claims[0].holds[1].value: no scenario \"fats\" in this claim (did you mean \"fast\"?)
@WORK@/claims.yaml:8: claims[0].holds[2].ratio: fast.step_time is a time, slow.peak_memory is a size
@WORK@/claims.yaml:9: claims[0].holds[3].at_most: expected a time such as \"25 us\", found a size (\"1 GB\")
@WORK@/claims.yaml:10: claims[0].holds[4].at_most: is below at_least: 2.00 s and 3.00 s
@WORK@/claims.yaml:11: claims[0].holds[5].closes.free: no cause \"computer\" (did you mean \"compute\"?)
@WORK@/claims.yaml:13: claims[0].holds[7].at_most: cannot hold beside another line on slow.step_time / fast.step_time: at most 1.50 here, at least 2.00 there
@WORK@/claims.yaml:14: claims[0].holds[8].about: cannot hold beside another line on slow.step_time / fast.step_time: at most 1.20 here, at least 2.00 there")
cli("check of a claim about no scenario" ARGS check @WORK@/out/claims.yaml CODE 2
  SHELL "printf 'claims:\n  - {id: a, text: b, scenarios: {x: llama32-3b-sft-zero4}, holds: [{value: x.fits, at_least: 1}]}\n' >@WORK@/out/claims.yaml
    \"$@\"; code=$?; rm @WORK@/out/claims.yaml; exit $code"
  ERROR "@WORK@/out/claims.yaml:2: claims[0].scenarios.x: no file and no scenario \"llama32-3b-sft-zero4\" (did you mean \"llama32-3b-sft-zero3\"?); `stepsim list scenarios` names them")
cli("check of a claim with a setting that there is not" ARGS check @WORK@/out/claims.yaml CODE 2
  SHELL "printf 'claims:\n  - id: a\n    text: b\n    scenarios:\n      x: {from: llama32-3b-sft-zero3, set: {strategy.zro: 2}}\n      y: llama32-3b-sft-zero3\n    holds: [{value: x.fits, at_least: 1}]\n    vary:\n      - {name: c, of: [y], set: {job.micro_batch: x}}\n' >@WORK@/out/claims.yaml
    \"$@\"; code=$?; rm @WORK@/out/claims.yaml; exit $code"
  ERROR_MATCHES "claims.yaml:5: claims.0..scenarios.x.set: strategy.zro: unknown key .did you mean .zero...\n.*claims.yaml:9: claims.0..vary.0..set: job.micro_batch: ")
cli("check of a scenario that lies beside the claims" HEAVY ARGS check @WORK@/out/beside/claims.yaml --draws 1
  SHELL "mkdir -p @WORK@/out/beside; cp @ROOT@/scenarios/seeds/mpt7b-zero2.yaml @WORK@/out/beside/mine.yaml
    printf 'claims:\n  - {id: a, text: b, scenarios: {x: mine.yaml}, holds: [{value: x.step_time, at_least: 1 ms}]}\n' >@WORK@/out/beside/claims.yaml
    \"$@\"; code=$?; rm -r @WORK@/out/beside; exit $code"
  OUTPUT "supported +100 % of")

# ---- changes that make it faster ----
cli("the same program with kernels of its own is a change" ARGS run mpt7b-zero2 --samples 0 --faster 20 --set stack=trl
  OUTPUT "\nstack: trl-liger ")
cli("on AMD GPUs, too" ARGS run llama32-3b-sft-zero3 --samples 0 --faster 20 --set stack=axolotl-rocm
  OUTPUT "\nstack: axolotl-liger-rocm ")
cli("another program, or the other vendor's, is none" ARGS run mpt7b-zero2 --samples 0 --faster 20 --set stack=deepspeed-hf
  SHELL "\"$@\" | grep -c '^stack:' || true" OUTPUT "^0\n$")

cli("cores of a host bound its update" ARGS run mpt7b-zero3-offload --samples 0 --brief --faster 0 --cores 1
  OUTPUT "^[1-9][0-9.]* (s|min) a step")
cli("cores are a number" ARGS run mpt7b-zero3-offload --cores none CODE 2 ERROR "--set: cluster.cores: expected a plain number, found \"none\"")

# ---- validate ----
cli("validate" HEAVY ARGS validate OUTPUT "family +run +metric +measured +predicted +error.*qwen3-30b-sft-zero3 +wall +38.0 h.*memory verdicts are right")
# The medians have one digit before their point.
cli("validate steps that this project measured" ARGS validate @ROOT@/scenarios/measured/own
  OUTPUT "own dense +50 +[0-9][.][0-9] % +1[0-9][.].*own experts +20 +[0-9][.][0-9] % .*own lora +30 .*own sharded +4 +[0-9][.][0-9] % +[0-9][.][0-9] % .*54 of 54 memory verdicts are right")
cli("validate as JSON" ARGS validate ${seeds}/mpt7b-zero2.yaml ${seeds}/mpt7b-zero2-oom.yaml --json
  KEYS rows/0/id rows/0/family rows/0/metric rows/0/predicted rows/0/measured rows/0/error rows/1/measured
       families/0/name families/0/rows families/0/median_abs_error families/0/p90_abs_error families/0/signed_mean)
cli("memory says the chance that it fits" ARGS memory llama32-3b-sft-zero3 OUTPUT "\nfits in [0-9]+ of 100; the peak is in .*\nthe largest micro-batch that fits in 9 of 10: [1-9][0-9]*\n")
cli("memory of what does not fit has a chance" ARGS memory mpt7b-zero2-oom --json CODE 1 KEYS chance chance_on_host largest_micro_batch)
cli("validate of estimates" ARGS validate --estimates OUTPUT "metric +estimated +predicted")
cli("validate a folder without scenarios" ARGS validate @ROOT@/cmake CODE 2
  ERROR "@ROOT@/cmake: holds no scenario (*.yaml)")
cli("validate what nobody measured" ARGS validate @ROOT@/scenarios/variants CODE 2
  ERROR "none of 20 scenarios has a measured: block")
cli("validate a misspelt name" ARGS validate mpt7b-zero3 CODE 2
  ERROR_MATCHES "^stepsim: no file and no scenario \"mpt7b-zero3\" \\(did you mean \"mpt7b-zero2\"\\?\\)")

# ---- list and show ----
cli("list scenarios" ARGS list scenarios OUTPUT "^scenarios\n.*seeds/qwen3-30b-sft-zero3 +Qwen3-30B-A3B SFT.*variants/")
cli("list stacks as JSON" ARGS list stacks --json KEYS stacks/0/name stacks/0/title)
cli("show a scenario by its path" ARGS show ${seeds}/llama32-3b-sft-zero3.yaml OUTPUT "Llama-3.2-3B SFT")
cli("show a scenario by its folder and name" ARGS show seeds/llama32-3b-sft-zero3 OUTPUT "Llama-3.2-3B SFT")
cli("show a stack" ARGS show deepspeed-hf OUTPUT "\\(stack\\).*host.module_hook.*sources")
cli("show a scenario" ARGS show mpt7b-zero2
  OUTPUT "resolved.*optimizer steps +10991\n.*iterations +43963 .*\njob\n.*samples +87925 +line [0-9]+\n.*keys are at defaults that change nothing here \\(.*strategy.fsdp[ \n]1[0-9].*--all[ \n]prints them\n$")
cli("show a scenario with all keys" ARGS show llama4-scout-qlora-1xh100 --all
  OUTPUT "strategy.lora\n  rank +[0-9]+ +line.*quantised +nf4 +line.*strategy.fsdp\n  version +2 +default.*strategy.tensor_parallel\n  size +1 +default")
cli("show a scenario with a setting" ARGS show qwen3-30b-sft-zero3 --set strategy.zero=2
  OUTPUT "  zero +2 +--set\n.*  sub_group_size +0 +line [0-9]+, without effect here\n")
cli("show a scenario with a DeepSpeed file" ARGS show @ROOT@/tests/cli/deepspeed.yaml
  OUTPUT "  micro_batch +2 +deepspeed.json:5\n.*  zero +2 +deepspeed.json:12\n")
cli("show a scenario as JSON" ARGS show qwen3-30b-sft-zero3 --json
  KEYS name kind title text resolved/tokens keys/0/key keys/0/value keys/0/line keys/20/matters)
cli("show a scenario as a file that runs" ARGS show @ROOT@/tests/cli/deepspeed.yaml --yaml
  SHELL "\"$@\" >out/a.yaml && @BUILD@/stepsim run out/a.yaml --samples 0 && rm out/a.yaml" OUTPUT "^with a DeepSpeed file: [^\n]*\n[0-9.]+ ms a step")
cli("show in two forms" ARGS show mpt7b-zero2 --json --yaml CODE 2 ERROR "--json and --yaml: only one of them can be printed")
cli("show a stack with a setting" ARGS show deepspeed-hf --set a=b CODE 2 ERROR "--set: deepspeed-hf is a stack, and no scenario")
cli("show a model with a setting" ARGS show llama-3.1-8b --all CODE 2 ERROR "--all: llama-3.1-8b is a model, and no scenario")
cli("show a scenario with a wrong setting" ARGS show mpt7b-zero2 --set strategy.zero=4 CODE 2
  ERROR "--set: strategy.zero: expected 0, 1, 2, 3, fsdp or hsdp, found \"4\"")
cli("show the template" ARGS show template OUTPUT "resolved.*expert_parallel +1 +line")

# ---- keys ----
cli("list keys" ARGS list keys OUTPUT "^top of the file\n.*strategy.offload\n.*  ratio: 0 to 1; default: 1\n      optimizer: cpu: share of it")
cli("list keys as JSON" ARGS list keys --json KEYS keys/0/block keys/0/key keys/0/kind keys/0/allowed keys/0/default keys/0/sentence)
cli("list keys as a template that runs" ARGS list keys --template sft
  SHELL "\"$@\" >out/a.yaml && @BUILD@/stepsim memory out/a.yaml && rm out/a.yaml" OUTPUT "^My run")
cli("list keys as a page" ARGS list keys --markdown OUTPUT "^# Keys of a scenario\n.*## strategy.lora\n")
cli("list keys of an unknown method" ARGS list keys --template ppo CODE 2 ERROR "--template: expected sft or grpo, found \"ppo\"")
cli("list keys in two forms" ARGS list keys --json --markdown CODE 2 ERROR "--json, --markdown and --template: only one of them can be printed")
cli("a template of nodes" ARGS list nodes --template sft CODE 2 ERROR "--template: goes with `list keys`")

# ---- together ----
set(pair @WORK@/out/pair.yaml @WORK@/out/pair.yaml)
set(write_pair "mkdir -p @WORK@/out && printf 'name: pair\nmodel: llama-3.2-1b\ncluster: {node: a100-8, nodes: 2, network: ethernet-100g}\nstack: fsdp2-eager\njob: {sequence: 2048, micro_batch: 1}\nstrategy: {zero: fsdp}\n' >@WORK@/out/pair.yaml;")
cli("two jobs on one leaf lose nothing to each other" ARGS together ${pair} SHELL "${write_pair} \"$@\""
  OUTPUT "A  pair +0-1 .* 0.0 %\nB  pair +2-3 .* 0.0 %\n\nNo link between nodes carries both.\n\nplayed by")
cli("two jobs over the same leaves lose to each other" HEAVY ARGS together ${pair} --placement 0,32/1,33 --set network.leaf.uplink=3GB/s
  SHELL "${write_pair} \"$@\"" OUTPUT "A  pair +0,32 .* [1-9][0-9]*.[0-9] %\nB  pair .*\nleaf[0-9]+.(up|down) carries both, and something for [0-9]+ % of the time\n")
cli("two jobs as JSON" ARGS together ${pair} --json SHELL "${write_pair} \"$@\"" KEYS a/alone_s a/together_s a/loses b/steps links engine/name)
cli("two jobs on the same nodes" ARGS together ${pair} --placement 0-1/1-2 SHELL "${write_pair} \"$@\"; code=$?; rm @WORK@/out/pair.yaml; exit $code" CODE 2
  ERROR "both jobs are on node 1 of the machine: say which nodes are whose, such as --placement 0-3/4-7")
cli("two jobs with half a placement" ARGS together ${pair} --placement 0-1 SHELL "${write_pair} \"$@\"; code=$?; rm @WORK@/out/pair.yaml; exit $code" CODE 2
  ERROR "--placement: expected the nodes of A and those of B, such as 0-3/4-7, found \"0-1\"")
cli("one job together with none" ARGS together mpt7b-zero2 CODE 2 ERROR_MATCHES "^stepsim: which two scenarios\\? usage: stepsim together A B ")
cli("a job on one node together with another" ARGS together mpt7b-zero2 mpt7b-zero2 CODE 2 ERROR_MATCHES "^stepsim: MPT-7B[^\n]* is on one node: it shares no network\n$")

# ---- diff ----
cli("diff of two scenarios" ARGS diff qwen3-30b-sft-zero3 qwen3-30b-sft-zero2moe
  OUTPUT "^A  qwen3-30b-sft-zero3\nB  qwen3-30b-sft-zero2moe\n\nkey +A +B\n.*strategy.zero +3 \\(line [0-9]+\\) +2 \\(line [0-9]+\\)\n")
cli("diff of a scenario and a change of it" ARGS diff llama32-3b-sft-zero3 --set strategy.zero=2
  OUTPUT "^A  llama32-3b-sft-zero3\nB  llama32-3b-sft-zero3 strategy.zero=2\n\nkey +A +B\n[- ]+\nstrategy.zero  3 \\(line [0-9]+\\)  2 \\(--set\\)\n$")
cli("diff of constants" ARGS diff llama32-3b-sft-zero3 --set cluster.xgmi.bandwidth=30GB/s
  OUTPUT "=30GB/s\n\nconstant +A +B\n[- ]+\nnode.links.xgmi.bandwidth +46.0 GB/s +30.0 GB/s\n$")
cli("diff of models" ARGS diff llama32-3b-sft-zero3 --set model=llama-3.1-8b OUTPUT "model +A +B\n[- ]+\nparameters +[0-9]+ +[0-9]+\nlayers +28 +32\n")
cli("show a constant that was set" ARGS show llama32-3b-sft-zero3 --set cluster.xgmi.bandwidth=30GB/s OUTPUT "\n  constants +{cluster.xgmi.bandwidth: 30GB/s} +--set\n")
cli("diff of a scenario with a DeepSpeed file" ARGS diff @ROOT@/tests/cli/deepspeed.yaml --set strategy.zero=3
  OUTPUT "strategy.zero +2 \\(deepspeed.json:12\\) +3 \\(--set\\)\nstrategy.zero_optimization.overlap_comm +false \\(deepspeed.json\\) +true \\(default\\)\n")
cli("diff of different kinds of jobs" ARGS diff llama32-3b-sft-zero3 grpo-7b-two-nodes OUTPUT "job.sequence +[0-9]+ \\(line [0-9]+\\) +no such key\n.*job.layout +no such key +separate")
cli("diff of equal scenarios" ARGS diff mpt7b-zero2 mpt7b-zero2 OUTPUT "\n\nno difference\n$")
cli("diff as JSON" ARGS diff llama32-3b-sft-zero3 --set strategy.zero=2 --json
  KEYS a b keys/0/key keys/0/a/value keys/0/a/line keys/0/b/source model constants)
cli("diff without a scenario" ARGS diff CODE 2 ERROR_MATCHES "^stepsim: which scenarios\\? usage: stepsim diff A ")
cli("diff of one scenario" ARGS diff mpt7b-zero2 CODE 2 ERROR "compared with what? name a second scenario, or change this one with --set")
cli("diff of a misspelt name" ARGS diff mpt7b-zero2 mpt7b-zero4 CODE 2 ERROR_MATCHES "^stepsim: no file and no scenario \"mpt7b-zero4\"")

# ---- report ----
cli("report of a scenario" ARGS report llama32-3b-sft-zero3 -o @WORK@/out/page.html
  OUTPUT "^@WORK@/out/page.html: [0-9.]+ [kM]B\n$")
cli("report of a saved collective" ARGS report step.h5 -o out/page.html
  SHELL "@BUILD@/stepsim collective all_reduce --cluster h100-8 --sizes 1MiB -o step.h5 >run.txt && \"$@\""
  OUTPUT "^out/page.html: ")
cli("report of two runs says why they differ" HEAVY ARGS report llama32-3b-sft-zero3 phi4-14b-sft-zero3 --replays 1 --samples 0 -o out/page.html
  SHELL "\"$@\" && grep -q '\"headline\":\"A takes ' out/page.html" OUTPUT "^out/page.html: ")
cli("report of two runs without their gap" ARGS report llama32-3b-sft-zero3 phi4-14b-sft-zero3 --no-gap -o out/page.html
  SHELL "\"$@\" && ! grep -q '\"headline\":' out/page.html" OUTPUT "^out/page.html: ")
cli("report of two sweeps" ARGS report a.h5 a.h5 -o out/page.html CODE 2
  SHELL "@BUILD@/stepsim sweep llama32-3b-sft-zero3 --vary job.micro_batch=1,2 -o a >sweep.txt && \"$@\""
  ERROR "a.h5: one sweep is enough for a page; `stepsim merge` puts shards together")
cli("report without a run" ARGS report CODE 2 ERROR_MATCHES "^stepsim: which run\\? usage: stepsim report ")
cli("report to nowhere" ARGS report llama32-3b-sft-zero3 CODE 2 ERROR "-o PAGE.html is missing: where the page goes")
cli("report of a misspelt name" ARGS report llama32-3b-sft-zero4 -o out/page.html CODE 2
  ERROR "no file and no scenario \"llama32-3b-sft-zero4\" (did you mean \"llama32-3b-sft-zero3\"?); `stepsim list scenarios` names them")

# ---- memory beside a snapshot ----
set(snapshot "@BUILD@/stepsim export llama32-3b-sft-zero3 --memory-viz out/own.pickle >said && \"$@\"")
cli("memory beside a real run's" ARGS memory llama32-3b-sft-zero3 --beside out/own.pickle SHELL "${snapshot}"
  OUTPUT "\nthe real run holds 42.3 GB at its peak, in backward; predicted are 42.3 GB, in backward, which is right\nit then reserves [0-9.]+ GB, [0-9.]+ GB more than it holds; predicted are 45.9 GB, 3.59 GB more\ndevice 0 of 1, [0-9]+ entries\n\nat the peak +real +predicted +off +of our classes\n[- ]+\nactivations +34.4 GB +34.4 GB +0 % +checkpoints 22.5 GB, activations 11.8 GB\n.*\nlargest in the real run +size +requests +for\n[- ]+\ncompute checkpoints +22.5 GB +28 +activations\n")
cli("memory beside a real run's, in a few lines" ARGS memory llama32-3b-sft-zero3 --set job.micro_batch=8 --beside out/own.pickle --brief
  SHELL "${snapshot}" OUTPUT ", 44 % too little\nmost of that in activations: 17.2 GB too little\nit then reserves [^\n]+\n[^\n]+ fits in [^\n]+\ntaken: [^\n]+\n$")
cli("memory beside a real run's, as JSON" ARGS memory llama32-3b-sft-zero3 --beside out/own.pickle --json SHELL "${snapshot}"
  KEYS beside/peak_bytes beside/moment beside/reserved_bytes beside/error beside/kinds/0/error beside/kinds/0/classes/0/0 beside/frames/0/frame)
foreach(each "a pickle that runs code|\\200\\004cos\\nsystem\\n.|2: GLOBAL would import or call something, which is never done: expected dictionaries, lists, tuples, texts, numbers, flags and None"
             "a pickle of something else|\\200\\002K\\001.|2: expected a memory snapshot of PyTorch, a dictionary with \"segments\" and \"device_traces\": torch.cuda.memory._dump_snapshot writes one"
             "a pickle cut short|\\200\\004}(|4: the file ends: expected 1 byte more, found 0"
             "a file that is no pickle|{\"segments\": []}|0: expected a pickle of protocol 2 to 5, which begins with the byte 0x80")
  string(REPLACE "|" ";" each "${each}")
  list(POP_FRONT each name bytes said)
  cli("memory beside ${name}" ARGS memory llama32-3b-sft-zero3 --beside s.pickle CODE 2
    SHELL "printf '${bytes}' >s.pickle; \"$@\"" ERROR "s.pickle: byte ${said}")
endforeach()
cli("memory beside an empty snapshot" ARGS memory llama32-3b-sft-zero3 --beside s.pickle CODE 2
  SHELL "printf '\\200\\004}(\\214\\010segments]\\214\\015device_traces](]eu.' >s.pickle; \"$@\""
  ERROR "s.pickle: holds no memory in use: expected blocks, or what was recorded")
cli("memory beside no file" ARGS memory llama32-3b-sft-zero3 --beside nowhere.pickle CODE 2
  ERROR "nowhere.pickle: cannot be read: No such file or directory")
cli("memory of a GRPO job beside a snapshot" ARGS memory template-grpo --beside s.pickle CODE 2
  ERROR "--beside: snapshots of GRPO jobs are not read, leave it out")

# ---- export ----
cli("export of a scenario" ARGS export llama32-3b-sft-zero3 --perfetto @WORK@/out/step.json
  OUTPUT "^@WORK@/out/step.json: [0-9]+ operations in [0-9]+ slices, [0-9.]+ MB\nopen it at https://ui.perfetto.dev or chrome://tracing\n$")
cli("export of a saved trace" ARGS export step.h5 --perfetto out/step.json --max-events 1000
  SHELL "@BUILD@/stepsim run llama32-3b-sft-zero3 --samples 0 -o step.h5 >run.txt && \"$@\""
  OUTPUT "operations in [0-9]+ slices \\(those that follow each other within [0-9.]+ ms share one\\)")
cli("export without a run" ARGS export CODE 2 ERROR_MATCHES "^stepsim: which run\\? usage: stepsim export ")
cli("export to nowhere" ARGS export llama32-3b-sft-zero3 CODE 2 ERROR "--perfetto FILE is missing: where the trace goes")
cli("export of a trace with a setting" ARGS export step.h5 --perfetto out/step.json --set strategy.zero=2 CODE 2
  SHELL "@BUILD@/stepsim collective all_reduce --cluster h100-8 --sizes 1MiB -o step.h5 >run.txt && \"$@\""
  ERROR "--set changes a scenario, and \"step.h5\" is a saved trace: what it holds has happened")
cli("export of a damaged trace" ARGS export step.h5 --perfetto out/step.json CODE 2
  SHELL "printf '\\211HDF\\r\\n\\032\\nrest' >step.h5 && \"$@\""
  ERROR_MATCHES "^stepsim: step.h5: is damaged or no run: ")
cli("export of a collective" ARGS export step.h5 --perfetto out/step.json
  SHELL "@BUILD@/stepsim collective all_reduce --cluster h100-8 --sizes 1MiB -o step.h5 >run.txt && \"$@\""
  OUTPUT "operations in [0-9]+ slices")
cli("export into a folder that is not there" ARGS export llama32-3b-sft-zero3 --perfetto nowhere/step.json CODE 2
  ERROR "nowhere/step.json: cannot be written: there is no folder \"nowhere\"")
cli("export of a GRPO run" ARGS export template-grpo --perfetto out/step.json OUTPUT "operations in [0-9]+ slices"
  SHELL "\"$@\" && grep -q generation out/step.json")
cli("export for PajeNG" ARGS export llama32-3b-sft-zero3 --as paje -o out/step.paje
  OUTPUT "^out/step.paje: [0-9]+ operations in [0-9]+ states, [0-9.]+ MB\nopen it with PajeNG \\(`pj_dump out/step.paje`\\) or ViTE\n$")
cli("export of a collective for PajeNG" ARGS export step.h5 --as paje -o out/step.paje
  SHELL "@BUILD@/stepsim collective all_reduce --cluster h100-8 --nodes 2 --sizes 1MiB -o step.h5 >run.txt && \"$@\" && grep -q 'node1.pcie' out/step.paje"
  OUTPUT "operations in [0-9]+ states, ")
cli("export of a GRPO run for PajeNG" ARGS export template-grpo --as paje -o out/step.paje OUTPUT "operations in [0-9]+ states"
  SHELL "\"$@\" && grep -q generation out/step.paje")
cli("export for PajeNG to nowhere" ARGS export llama32-3b-sft-zero3 --as paje CODE 2 ERROR "-o FILE is missing: where the file goes")
cli("export of a scenario's memory" ARGS export llama32-3b-sft-zero3 --memory-viz @WORK@/out/memory.pickle
  OUTPUT "^@WORK@/out/memory.pickle: [0-9]+ requests of rank 0, 42.3 GB at the peak, [0-9.]+ GB in segments\nopen it at https://pytorch.org/memory_viz\n$")
cli("export of the memory of another stage" ARGS export llama33-70b-pipeline --memory-viz @WORK@/out/memory.pickle --rank 3
  OUTPUT "requests of rank 3, ")
cli("export of the memory of no rank" ARGS export llama32-3b-sft-zero3 --memory-viz out/memory.pickle --rank 9 CODE 2
  ERROR "--rank: expected 0 to 0, found 9")
cli("export of the memory of a GRPO job" ARGS export template-grpo --memory-viz out/memory.pickle CODE 2
  ERROR "--memory-viz: the memory of GRPO jobs is not written, only a training step's")
cli("export of the memory of a collective" ARGS export step.h5 --memory-viz out/memory.pickle CODE 2
  SHELL "@BUILD@/stepsim collective all_reduce --cluster h100-8 --sizes 1MiB -o step.h5 >run.txt && \"$@\""
  ERROR "step.h5: is a trace of something else than a scenario's step")
cli("export of memory and a trace" ARGS export llama32-3b-sft-zero3 --memory-viz out/a --perfetto out/b CODE 2
  ERROR "--perfetto, --memory-viz and --as: expected one of them")
cli("export of a rank's operations" ARGS export llama32-3b-sft-zero3 --perfetto out/b --rank 0 CODE 2
  ERROR "--rank: expected with --memory-viz alone")
cli("export with too few events" ARGS export llama32-3b-sft-zero3 --perfetto out/step.json --max-events 5 CODE 2
  ERROR_MATCHES "^stepsim: --max-events: expected ")

# With nobody to complain to, a mistake is still a mistake and not a crash.
foreach(where "2>&-" "2>/dev/full")
  add_test(NAME "cli/a mistake with stderr ${where}"
    COMMAND sh -c "\"$0\" collective x ${where}; test $? -eq 2" $<TARGET_FILE:stepsim>)
  set_tests_properties("cli/a mistake with stderr ${where}" PROPERTIES LABELS cli)
endforeach()

# ---- single kernels ----
cli("kernels beside measured ones" ARGS kernels OUTPUT "family .*h100-sxm gemm .*left out.*[0-9]+ of [0-9]+ rows are predicted")
cli("kernels as JSON" ARGS kernels --json KEYS rows/0/gpu rows/0/predicted_s families/0/median_abs_error left_out/0/reason)
cli("kernels row by row" ARGS kernels --rows OUTPUT "^GPU .*mi300x +batched_gemm +4096 +1280 +8192")
cli("kernels without a table" ARGS kernels nowhere.csv CODE 2 ERROR_MATCHES "nowhere.csv: cannot be read")
cli("a processor is a setting like others" ARGS diff llama32-3b-sft-zero3 --set cluster.processor=grace
  OUTPUT "\ncluster.processor +not set: the first that the node's or the cluster's file names .default. +grace .--set.\n.*node.host.core_speed +1.06 +0.41\n")
cli("explain names the processor" SLOW ARGS explain qwen3-30b-sft-zero3 --set cluster.processor=epyc-9575f --samples 0 --replays 1
  OUTPUT "above all in optimizer .*epyc-9575f in B. carries all of it: ")
