# Cases of steps over pipeline stages. How a case is written stands at the top of cases.cmake.
if(NOT COMMAND cli)
  return()
endif()
set(variant @ROOT@/scenarios/variants/llama33-70b-pipeline.yaml)
set(stages --set strategy.pipeline_parallel)
set(rank "--set: strategy.pipeline_parallel")

cli("run over pipeline stages" ARGS run --full llama33-70b-pipeline --samples 0 --faster 0
  OUTPUT "64 ranks: data 2 x TP 8 x PP 4\n.*mean of all stages .*pipeline_bubble .*stage_transfer .*the peak is in backward, at [a-z_.]+, on stage 0, the fullest of 4 stages\n")
cli("a split schedule makes a step over stages faster" ARGS run @ROOT@/scenarios/variants/llama31-8b-zero-bubble.yaml --samples 0
    --set strategy.pipeline_parallel.schedule=1f1b
  OUTPUT "\nfaster, each alone .*\nstrategy.pipeline_parallel.schedule: zb_h1 +1\\.[0-9]+ s +\\+[0-9.]+ %")
cli("run over pipeline stages, as JSON" ARGS run llama33-70b-pipeline --samples 0 --json KEYS step_time_s stage breakdown/0/cause)
cli("run over stages that have fewer micro-batches" ARGS run --full llama33-70b-pipeline --samples 0 --faster 0 --set job.gradient_accumulation=2
    --set strategy.pipeline_parallel.schedule=gpipe --set strategy.pipeline_parallel.virtual_stages=1
  OUTPUT "note: 2 micro-batches are fewer than 4 stages: each stage waits for the others 60 % of the passes\n")
cli("memory over pipeline stages" ARGS memory llama33-70b-pipeline OUTPUT "fits in .*on stage 0, the fullest of 4 stages\n")
cli("memory over stages, the last of which has most layers" ARGS memory llama33-70b-pipeline --set strategy.checkpointing=full
    --set strategy.pipeline_parallel.schedule=1f1b --set strategy.pipeline_parallel.virtual_stages=1
    --set "strategy.pipeline_parallel.layers=[10,10,10,50]"
  OUTPUT "on stage 3, the fullest of 4 stages\n")
cli("explain of a schedule" SLOW ARGS explain @WORK@/out/stages.yaml --samples 0 --set strategy.pipeline_parallel.schedule=gpipe
  SHELL "sed -e 's/70b/8b/;s/llama-3.3/llama-3.1/;s/nodes: 8/nodes: 1/;s/accumulation: 32/accumulation: 2/;s/size: 8/size: 1/;s/, sched.*/}/' ${variant} >@WORK@/out/stages.yaml
    \"$@\"; code=$?; rm @WORK@/out/stages.yaml; exit $code"
  OUTPUT "stage_transfer .*gap ")
cli("sweep over pipeline stages" ARGS sweep llama33-70b-pipeline --vary job.gradient_accumulation=2,4
  OUTPUT "2 points, 1 of them can run")
cli("a step over stages for a tracing page" ARGS export llama33-70b-pipeline --perfetto @WORK@/out/stages.json
  OUTPUT "open it at")

cli("stages that do not divide the ranks and the layers" ARGS run llama33-70b-pipeline ${stages}={size:\ 3} CODE 2
  ERROR "${rank}.size: 3 does not divide 64 ranks
${rank}.size: 3 stages do not divide 80 layers; say how many each has, such as layers: [27, 27, 26]")
cli("more stages than layers" ARGS run llama33-70b-pipeline --set cluster.nodes=128 --set strategy.tensor_parallel.size=1 ${stages}={size:\ 128}
  CODE 2 ERROR "${rank}.size: 128 stages are more than the 80 layers of llama-3.3-70b")
cli("pieces that do not divide the layers" ARGS run llama33-70b-pipeline
    ${stages}={size:\ 4,\ schedule:\ interleaved,\ virtual_stages:\ 3}
  CODE 2 ERROR "${rank}.virtual_stages: 4 x 3 pieces do not divide 80 layers; say how many each has, such as layers: [7, 7, 7, 7, 7, 7, 7, 7, 6, 6, 6, 6]")
cli("interleaved micro-batches that do not come out even" ARGS run llama33-70b-pipeline --set job.gradient_accumulation=30
  CODE 2 ERROR "${variant}:14: strategy.pipeline_parallel.schedule: interleaved stages take micro-batches 4 at a time: job.gradient_accumulation 30 is no multiple of that")
cli("a schedule that nobody has" ARGS run llama33-70b-pipeline ${stages}={size:\ 4,\ schedule:\ 1f1c}
  CODE 2 ERROR "${rank}.schedule: expected 1f1b, gpipe, interleaved, zb_h1, zbv, v_half, v_min, dualpipe or dualpipe_v, found \"1f1c\" (did you mean \"1f1b\"?)")
cli("pieces without their schedule" ARGS run llama33-70b-pipeline ${stages}={size:\ 4,\ virtual_stages:\ 2}
  CODE 2 ERROR "${rank}.virtual_stages: 1f1b has one piece on each stage; more need schedule: interleaved, zb_h1, zbv, v_half, v_min or dualpipe_v")
foreach(schedule zbv v_half v_min dualpipe_v)
  cli("${schedule} with other than two pieces" ARGS run llama33-70b-pipeline ${stages}={size:\ 4,\ schedule:\ ${schedule},\ virtual_stages:\ 4}
    CODE 2 ERROR "${rank}.schedule: ${schedule} needs virtual_stages: 2, a piece there and one back; found 4")
endforeach()
cli("pieces from both ends" ARGS run llama33-70b-pipeline ${stages}={size:\ 4,\ schedule:\ dualpipe,\ virtual_stages:\ 2}
  CODE 2 ERROR "${rank}.virtual_stages: dualpipe has one piece on each stage; more need schedule: interleaved, zb_h1, zbv, v_half, v_min or dualpipe_v")
cli("both ends of an odd number of stages, with few micro-batches" ARGS run llama33-70b-pipeline --set cluster.nodes=5
    --set job.gradient_accumulation=8 ${stages}={size:\ 5,\ schedule:\ dualpipe}
  CODE 2 ERROR "${rank}.schedule: dualpipe needs an even size, found 5
${rank}.schedule: dualpipe needs 2 micro-batches for each stage, here 10: job.gradient_accumulation is 8")
cli("both ends with an odd number of micro-batches" ARGS run llama33-70b-pipeline --set job.gradient_accumulation=9
    ${stages}={size:\ 4,\ schedule:\ dualpipe}
  CODE 2 ERROR "${rank}.schedule: dualpipe runs half of the micro-batches each way: job.gradient_accumulation 9 is odd")
cli("dualpipe_v with few micro-batches" ARGS run llama33-70b-pipeline --set job.gradient_accumulation=7
    ${stages}={size:\ 4,\ schedule:\ dualpipe_v,\ virtual_stages:\ 2}
  CODE 2 ERROR "${rank}.schedule: dualpipe_v needs 2 micro-batches for each stage, here 8: job.gradient_accumulation is 7")
cli("interleaved zero bubble that does not come out even" ARGS run llama33-70b-pipeline --set job.gradient_accumulation=30
    ${stages}={size:\ 4,\ schedule:\ zb_h1,\ virtual_stages:\ 2}
  CODE 2 ERROR "${rank}.schedule: interleaved stages take micro-batches 4 at a time: job.gradient_accumulation 30 is no multiple of that")
cli("split passes that are compiled" ARGS run llama33-70b-pipeline --set strategy.compile=true ${stages}={size:\ 4,\ schedule:\ zb_h1}
  CODE 2 ERROR "${rank}.schedule: zb_h1 splits backward passes, which PyTorch refuses with strategy.compile: true")
cli("split passes whose gradients are reduced each time" ARGS run llama33-70b-pipeline --set strategy.zero=fsdp --set strategy.fsdp.sync_each_batch=true
    --set strategy.gradient_dtype=bf16 --set strategy.distributed_optimizer=null ${stages}={size:\ 4,\ schedule:\ zb_h1}
  CODE 2 ERROR_MATCHES "pipeline_parallel.size: fsdp.sync_each_batch: true is not modelled with split backward passes, whose gradients come in two parts\n")
cli("a split schedule of one stage" ARGS run llama33-70b-pipeline ${stages}={size:\ 1,\ schedule:\ zb_h1}
  CODE 2 ERROR "${rank}.schedule: needs a size of 2 or more")
cli("experts' tokens under split passes that do not pair" ARGS run llama33-70b-pipeline --set strategy.moe.overlap=true
    ${stages}={size:\ 4,\ schedule:\ zb_h1}
  CODE 2 ERROR_MATCHES "moe.overlap: needs schedule: interleaved, dualpipe or dualpipe_v where layers are spread over stages\n")
cli("layers of stages that are not those of the model" ARGS run llama33-70b-pipeline ${stages}={size:\ 4,\ layers:\ [20,\ 0,\ 20,\ 20]}
  CODE 2 ERROR "${rank}.layers: expected 80 layers in all, those of llama-3.3-70b, found 60
${rank}.layers: only the first and the last may have none")
foreach(stage 2 3)
  cli("stages under zero ${stage}" ARGS run llama33-70b-pipeline --set strategy.zero=${stage} CODE 2
    ERROR_MATCHES "pipeline_parallel.size: zero: 2 and 3 send gradients away behind each micro-batch, .*DeepSpeed's pipelines work with zero: 0 or 1, fsdp's keep parameters gathered\n")
endforeach()
cli("stages of preferences" ARGS run llama33-70b-pipeline --set job.method=dpo CODE 2
  ERROR "${variant}:14: strategy.pipeline_parallel.size: is modelled for method: sft and grpo only")
cli("stages that offload" ARGS run llama33-70b-pipeline --set strategy.offload.optimizer=cpu CODE 2
  ERROR_MATCHES "pipeline_parallel.size: is not modelled with offload\n")
