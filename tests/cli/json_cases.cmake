# What --json prints, and its document. How a case is written stands at the top of cases.cmake.
if(NOT COMMAND cli)
  return()
endif()

cli("docs/json.md is what the records say" ARGS list --json-schemas
  SHELL "\"$@\" >@WORK@/json.md; diff @ROOT@/docs/json.md @WORK@/json.md")
cli("a result says what it is and what was asked" ARGS run llama32-3b-sft-zero3 --samples 0 --set strategy.zero=2 --json
  OUTPUT "^{\"result\": \"run\", \"schema\": 1, \"version\": \"[0-9.]+\", \"scenario\": {\"title\": \"[^\"]+\", \"source\": \"llama32-3b-sft-zero3\", \"set\": \\[\"strategy.zero=2\"\\], \"resolved\": \"name: "
  KEYS notes guesses/0 step_time_s)
if(STEPSIM_PYTHON)
  cli("the scenario in a result gives the same result" ARGS run llama32-3b-sft-zero3 --samples 0 --set strategy.zero=2 --set job.micro_batch=2 --json
    SHELL "cd @WORK@; \"$@\" >a.json || exit
      ${STEPSIM_PYTHON} -c 'import json; print(json.load(open(\"a.json\"))[\"scenario\"][\"resolved\"])' >again.yaml
      \"$1\" run again.yaml --samples 0 --json >b.json || exit
      ${STEPSIM_PYTHON} -c 'import json; a, b = (json.load(open(f)) for f in (\"a.json\", \"b.json\")); print([key for key in a if key != \"scenario\" and a[key] != b[key]])'"
    OUTPUT "^\\[\\]\n$")
  add_test(NAME cli/schemas COMMAND ${STEPSIM_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/check_schemas.py
    $<TARGET_FILE:stepsim> ${PROJECT_SOURCE_DIR}/docs/json.md WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(cli/schemas PROPERTIES LABELS cli)
  add_test(NAME cli/follow-calibrate COMMAND ${STEPSIM_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/follow_calibrate.py
    $<TARGET_FILE:stepsim> ${PROJECT_SOURCE_DIR}/docs/calibrate.md ${CMAKE_CURRENT_BINARY_DIR}/cli/follow_calibrate)
  set_tests_properties(cli/follow-calibrate PROPERTIES LABELS cli)
endif()
