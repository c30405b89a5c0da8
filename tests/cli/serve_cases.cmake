# Cases of serve. How a case is written stands at the top of cases.cmake.
if(NOT COMMAND cli)
  return()
endif()
cli("serve at a port that is none" ARGS serve --port 65536 CODE 2 ERROR "--port: expected 0 to 65535, found 65536")
cli("serve at no address" ARGS serve --address example.org CODE 2
  ERROR "--address: expected one address of this machine, such as 127.0.0.1, found \"example.org\"")
cli("serve at every address" ARGS serve --address 0.0.0.0 CODE 2
  ERROR "--address: expected one address of this machine, such as 127.0.0.1, found \"0.0.0.0\"")
cli("serve of a folder that is none" ARGS serve nowhere CODE 2 ERROR "nowhere: is no folder")
cli("serve at another address warns" ARGS serve --address 192.0.2.1 CODE 2
  ERROR_MATCHES "^stepsim: warning: everybody who reaches 192.0.2.1 can call, and what is said is not encrypted: whoever sees the link has it\nstepsim: --port: nobody can listen at 192.0.2.1 port 8420: ")

cli("serve at a URL that is none" ARGS serve --public-url example.org CODE 2
  ERROR "--public-url: expected a URL such as https://example.org/stepsim, found \"example.org\"")
cli("serve with tokens that are too short" ARGS serve --tokens tokens.yaml CODE 2
  SHELL "printf 'ada: short\n' >tokens.yaml; \"$@\"; code=$?; rm tokens.yaml; exit $code"
  ERROR "tokens.yaml:1: ada: expected 16 letters and digits, or more")
cli("mcp in a folder that is none" ARGS mcp --folder nowhere CODE 2 ERROR "nowhere: is no folder")
cli("mcp of nothing" ARGS mcp SHELL "\"$@\" </dev/null" OUTPUT "^$")

if(STEPSIM_PYTHON)
  foreach(speed quick slow)
    add_test(NAME cli/mcp_${speed} COMMAND ${STEPSIM_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/check_mcp.py
      $<TARGET_FILE:stepsim> ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_BINARY_DIR}/mcp_${speed} ${speed})
    set_tests_properties(cli/mcp_${speed} PROPERTIES LABELS "cli;${speed}")
    add_test(NAME cli/serve_${speed} COMMAND ${STEPSIM_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/check_serve.py
      $<TARGET_FILE:stepsim> ${CMAKE_CURRENT_BINARY_DIR}/serve_${speed} ${speed})
    set_tests_properties(cli/serve_${speed} PROPERTIES LABELS "cli;${speed}")
  endforeach()
  add_test(NAME cli/serve_page COMMAND ${STEPSIM_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/check_serve_page.py
    $<TARGET_FILE:stepsim> ${CMAKE_CURRENT_BINARY_DIR}/serve_page)
  set_tests_properties(cli/serve_page PROPERTIES LABELS "cli;slow" SKIP_RETURN_CODE 77)  # no Chromium
endif()
