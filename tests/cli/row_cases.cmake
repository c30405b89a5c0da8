# Cases of tables of kernels, and of what scenarios take from recipes. How a case is written stands at the top of cases.cmake.
if(NOT COMMAND cli)
  return()
endif()
set(table "@WORK@/out/rows.csv")
set(run "\"$@\"; code=$?; rm @WORK@/out/rows.csv; exit $code")

cli("kernels of other types" ARGS kernels ${table}
  SHELL "printf '%s\\n' 'id,source,hardware,op,dtype,batch,M,N,K,layout,groups,extra,time_ms,tflops' 'a,x,H100 SXM,gemm,fp8,,4096,4096,4096,,,,0.1,' 'b,x,H100 SXM,gemm,bf16,,4096,4096,4096,,,,0.2,' >${table}
    ${run}"
  OUTPUT "a +fp8 is no type of 16 bits: no curve is known for it\n.*\n1 of 2 rows are predicted")

# ---- what scenarios take from recipes and stacks ----
cli("list of recipes" ARGS list recipes OUTPUT "recipes\n.*azure-2022 .*megatron-swift +Megatron-SWIFT's scripts")
cli("show a recipe" ARGS show megatron-swift
  OUTPUT "^megatron-swift .recipe.: Megatron-SWIFT's scripts\n.*unless told otherwise: {strategy: {offload: {threads: 1}}}, where {strategy.offload.optimizer:\n  cpu}\n")
cli("show what a stack fills in" ARGS show megatron OUTPUT "unless told otherwise: {strategy: {zero: 1}}\n")
cli("a recipe that there is not" ARGS run @ROOT@/scenarios/variants/llama33-70b-pipeline.yaml --set recipe=azure-2023 CODE 2
  ERROR "--set: recipe: no recipe \"azure-2023\" (did you mean \"azure-2022\"?)")

# ---- tables of published runs, which measure/rows.py asks of the program row by row ----
if(STEPSIM_PYTHON)
  add_test(NAME cli/rows COMMAND ${STEPSIM_PYTHON} -B ${PROJECT_SOURCE_DIR}/tests/rows/check_rows.py
    ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_BINARY_DIR}/cli/rows)
  set_tests_properties(cli/rows PROPERTIES LABELS "cli;quick")
  foreach(speed quick slow)
    add_test(NAME cli/row_tables_${speed} COMMAND ${STEPSIM_PYTHON} -B ${PROJECT_SOURCE_DIR}/tests/rows/check_row_tables.py ${speed}
      $<TARGET_FILE:stepsim> ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_BINARY_DIR}/cli/row_tables_${speed})
    set_tests_properties(cli/row_tables_${speed} PROPERTIES LABELS "cli;${speed};heavy" ENVIRONMENT STEPSIM_PARTS=$<TARGET_FILE:row_parts>)
  endforeach()
endif()
