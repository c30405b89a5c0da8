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
  add_test(NAME cli/follow-calibrate COMMAND ${STEPSIM_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/follow_calibrate.py
    $<TARGET_FILE:stepsim> ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_BINARY_DIR}/cli/follow_calibrate)
  add_test(NAME cli/fit COMMAND ${STEPSIM_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/check_fit.py
    $<TARGET_FILE:stepsim> ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_BINARY_DIR}/cli/fit)
  set_tests_properties(cli/fit PROPERTIES LABELS "cli;slow;heavy")
  add_test(NAME cli/resolved COMMAND ${STEPSIM_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/check_resolved.py
    $<TARGET_FILE:stepsim> ${CMAKE_CURRENT_BINARY_DIR}/cli/resolved WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(cli/follow-calibrate PROPERTIES LABELS "cli;quick;heavy")
  set_tests_properties(cli/schemas PROPERTIES LABELS "cli;slow")
  set_tests_properties(cli/resolved PROPERTIES LABELS "cli;slow;heavy")
  add_test(NAME cli/python COMMAND ${STEPSIM_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/python_package.py
    $<TARGET_FILE:stepsim> ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_BINARY_DIR}/cli/python)
  set_tests_properties(cli/python PROPERTIES LABELS "cli;slow")
  # What pages show as output; those that predict all measured runs take their time.
  # Long ones are begun first (COST), so that no core waits for them at the end.
  function(page_test speed cost)
    list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE pages)
    list(TRANSFORM pages APPEND .md)
    list(GET ARGN 0 first)
    add_test(NAME "cli/pages show what is printed, from ${first}" WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
      COMMAND ${STEPSIM_PYTHON} -B ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/documented.py $<TARGET_FILE:stepsim> ${pages})
    set_tests_properties("cli/pages show what is printed, from ${first}" PROPERTIES LABELS "cli;${speed};heavy" COST ${cost})
  endfunction()
  page_test(quick 0 README docs/collectives docs/five-minutes docs/plan)
  page_test(slow 400 docs/scenarios docs/fidelity docs/grpo)
  foreach(page docs/claims docs/explain-runs docs/grpo-32b)
    page_test(slow 400 ${page})
  endforeach()
  add_test(NAME "cli/command lines of pages run" COMMAND ${STEPSIM_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/commands_of_pages.py
    $<TARGET_FILE:stepsim> ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_BINARY_DIR}/cli/commands_of_pages)
  set_tests_properties("cli/command lines of pages run" PROPERTIES LABELS "cli;slow;heavy" COST 400)
  add_test(NAME "pages are short and their links lead somewhere" COMMAND ${STEPSIM_PYTHON} -B ${PROJECT_SOURCE_DIR}/tests/check_pages.py
    ${PROJECT_SOURCE_DIR})
  set_tests_properties("pages are short and their links lead somewhere" PROPERTIES LABELS "cli;quick")
endif()
# What was taken for a file of another program stands in every result about it.
set(taken assumptions/0/what assumptions/0/taken assumptions/0/because assumptions/0/change)
set(foreign @ROOT@/tests/cli/axolotl/small-sft.8xMI300.yaml)
cli("assumptions in a run" ARGS run ${foreign} --samples 0 --json KEYS ${taken})
cli("assumptions in a memory" ARGS memory ${foreign} --json KEYS ${taken})
cli("assumptions in a scenario that is shown" ARGS show ${foreign} --json KEYS ${taken})
cli("assumptions in a sweep" ARGS sweep ${foreign} --vary micro_batch_size=1,2 --json KEYS ${taken})
cli("assumptions in a search" ARGS sweep ${foreign} --vary micro_batch_size=1,2 --find "max micro_batch_size such that fits" --json
  KEYS ${taken} scenario/resolved)
list(TRANSFORM taken PREPEND asked_a/ OUTPUT_VARIABLE taken_of_a)
cli("assumptions in a difference" ARGS diff ${foreign} --set strategy.zero=2 --json KEYS ${taken_of_a} asked_b/scenario/set/0)
cli("what is set stands over a file's own DeepSpeed file" ARGS show ${foreign} --set strategy.zero=2 OUTPUT "zero  +2  +--set")
cli("assumptions in an explanation" HEAVY ARGS explain ${foreign} --set strategy.zero=2 --replays 1 --samples 0 --json KEYS ${taken_of_a})
list(TRANSFORM taken PREPEND claims/0/scenarios/0/asked/ OUTPUT_VARIABLE taken_of_claim)
cli("assumptions in a claim" HEAVY ARGS check @WORK@/claims.yaml --draws 1 --json KEYS ${taken_of_claim}
  SHELL "printf 'claims:\n  - {id: a, text: b, scenarios: {x: %s}, holds: [{value: x.step_time, at_least: 1 us}]}\n' ${foreign} >@WORK@/claims.yaml; \"$@\"")
cli("the file of a scenario leaves nothing open" ARGS run @ROOT@/tests/cli/tiny.yaml --samples 0 --json
  OUTPUT "\"assumptions\": \\[\\], ")
