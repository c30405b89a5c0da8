# Cases of tables of published steps as people write them. How a case is written stands at the top of cases.cmake.
if(NOT COMMAND cli)
  return()
endif()
set(columns "id,model,stack,cluster.node,cluster.gpus_per_node,job.sequence,job.micro_batch")
set(row "llama-3.1-8b,fsdp2-eager,h100-8,2,2048,1")
set(table "@WORK@/out/rows.csv")
set(run "\"$@\"; code=$?; rm @WORK@/out/rows.csv; exit $code")

cli("rows that are no scenarios" ARGS validate --rows ${table} CODE 1
  SHELL "printf '%s\\n' 'id,hardware,stack,cluster.node,not_expressed,step_s' 'a,H100,,,,1' 'b,H100,,,no stack of it,1' 'c,H100,trl,h100-9,,1' >${table}
    ${run}"
  OUTPUT "not predicted +what is missing.*\na +a scenario: in a column \"scenario\", or in columns named by its keys, as cluster.node\nb +no stack of it\nc +.*h100-9.*did you mean.*0 of 3 rows are predicted: nothing was compared\n")
cli("rows say what was taken for granted" ARGS validate --rows ${table}
  SHELL "printf '%s\\n' '${columns},recipe,taken,step_s' 'a,${row},torchtitan-allocator,no accumulation | a guess,1' 'b,${row},,no accumulation,1' >${table}
    ${run}"
  OUTPUT "assumed +rows +first row\n.*no accumulation +2 +a\na guess +1 +a\nas torchtitan's launchers have it: strategy.expandable_segments: true +1 +a\n.*2 of 2 rows are predicted; errors")
cli("rows of whole scenarios, with a column over them" ARGS validate --rows ${table} --json
  SHELL "printf '%s\\n' 'id,model,scenario,job.micro_batch,mem_GB,mem_kind,step_s,outcome' 'a,as printed,\"{model: llama-3.1-8b, cluster: {node: h100-8}, stack: trl, job: {sequence: 1024}}\",2,60,reserved,1,ran' >${table}
    ${run}"
  OUTPUT "\"metric\": \"mem_GB\".*micro_batch: 2.*\"counts\": \"reserved\"")
cli("rows are exported as scenarios that run" ARGS validate --rows ${table} --export @WORK@/out/rows
  SHELL "printf '%s\\n' '${columns},recipe,family,taken,step_s' 'a/1,${row},torchtitan-allocator,some,no accumulation,1' >${table}
    \"$@\" >said 2>&1; code=$?; rm ${table}; grep note: said; cat out/rows/a-1.yaml; rm -r out/rows; exit $code"
  OUTPUT "note: 1 scenarios are in @WORK@/out/rows\n# assumed: no accumulation\n# assumed: as torchtitan's launchers have it: strategy.expandable_segments: true\nname: a/1\nfamily: some\n.*cluster:\n.*node: h100-8\n")
cli("only rows are exported" ARGS validate --export out CODE 2
  ERROR "--export: writes rows of tables as scenarios: name the tables with --rows")
cli("rows with columns of other names" ARGS validate --rows ${table}
  SHELL "printf '%s\\n' '${columns},hardware,step_sec' 'a,${row},H100,1' >${table}
    \"$@\" 2>said; code=$?; rm ${table}; cat said; exit $code"
  OUTPUT "note: .*rows.csv:1: step_sec: is not read .did you mean \"step_s\"..\nnote: .*rows.csv:2: \"a\" has no measured figure; 1 of 1 rows have none\n")
cli("rows with one id" ARGS validate --rows ${table} CODE 2
  SHELL "printf '%s\\n' '${columns},step_s' 'a,${row},1' 'b,${row},1' 'a,${row},2' >${table}
    ${run}"
  ERROR "@WORK@/out/rows.csv:4: id: \"a\" is at @WORK@/out/rows.csv:2 already")
cli("a table that is empty" ARGS validate --rows ${table} CODE 2
  SHELL ": >${table}; ${run}"
  ERROR "@WORK@/out/rows.csv: is empty: expected a line with the names of columns")
cli("families of tables that are not given are not compared" HEAVY ARGS validate --rows @WORK@/few.csv
  SHELL "head -n 3 @ROOT@/scenarios/measured/grpo/grpo.csv >@WORK@/few.csv; \"$@\" --record ${table} >first; echo 'dense fsdp a100-sxm-80,1,2.00,2.00,0,0.00,1,1' >>${table}
    \"$@\" --recorded ${table}; code=$?; rm ${table}; exit $code"
  OUTPUT "nothing changed since .*rows.csv\nfamilies of tables that were not given, not compared: 1\n")
cli("kernels of other types" ARGS kernels ${table}
  SHELL "printf '%s\\n' 'id,source,hardware,op,dtype,batch,M,N,K,layout,groups,extra,time_ms,tflops' 'a,x,H100 SXM,gemm,fp8,,4096,4096,4096,,,,0.1,' 'b,x,H100 SXM,gemm,bf16,,4096,4096,4096,,,,0.2,' >${table}
    ${run}"
  OUTPUT "a +fp8 is no type of 16 bits: no curve is known for it\n.*\n1 of 2 rows are predicted")

# ---- what rows and scenarios take from recipes and stacks ----
cli("list of recipes" ARGS list recipes OUTPUT "recipes\n.*azure-2022 .*megatron-swift +Megatron-SWIFT's scripts")
cli("show a recipe" ARGS show megatron-swift
  OUTPUT "^megatron-swift .recipe.: Megatron-SWIFT's scripts\n.*unless told otherwise: {strategy: {offload: {threads: 1}}}, where {strategy.offload.optimizer:\n  cpu}\n")
cli("show what a stack fills in" ARGS show megatron OUTPUT "unless told otherwise: {strategy: {zero: 1}}\n")
cli("a recipe that there is not" ARGS run @ROOT@/scenarios/variants/llama33-70b-pipeline.yaml --set recipe=azure-2023 CODE 2
  ERROR "--set: recipe: no recipe \"azure-2023\" (did you mean \"azure-2022\"?)")
cli("rows of engines whose GPUs do not share heads" ARGS validate --rows ${table} CODE 1
  SHELL "printf '%s\\n' 'id,load,output_tok_s' 'a,\"{model: qwen3-14b, node: h100-8, tensor_parallel: 5, prompt: 100, answer: 100, requests: 10}\",1000' >${table}
    ${run}"
  OUTPUT "\na +tp: 5 neither divides the 8 key-value heads of qwen3-14b nor is a multiple of them\n")
