# cmake -D PYTHON=<python> -D WORK=<scratch folder> -P check_framework_names_test.cmake
# Plants a framework's name in a literal and in an identifier, and requires that check_framework_names.py finds both, fails, and
# leaves comments, keys and the readers of a framework's own files alone.
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE ${WORK})
file(WRITE ${WORK}/sim/clean.cpp "// as Megatron has it\nconst char* key = \"strategy.deepspeed\";\n")
file(WRITE ${WORK}/scenarios/foreign/own.cpp "const char* name = \"axolotl\";\n")

function(check code)
  execute_process(COMMAND ${PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/check_framework_names.py ${WORK}
    OUTPUT_VARIABLE output RESULT_VARIABLE result)
  if(NOT result EQUAL code)
    message(FATAL_ERROR "expected ${code}, found ${result}: ${output}")
  endif()
  foreach(line IN LISTS ARGN)
    if(NOT output MATCHES "${line}")
      message(FATAL_ERROR "expected \"${line}\", found: ${output}")
    endif()
  endforeach()
endfunction()

check(0)
file(WRITE ${WORK}/workloads/literal.cpp "int one;\nconst char* stack = \"torchtitan-fsdp2\";\n")
file(WRITE ${WORK}/cli/identifier.hpp "bool is_megatron = false;\n")
check(1 "workloads/literal.cpp:2: \"torchtitan-fsdp2\" names torchtitan: a stack, a recipe or a key table says it"
        "cli/identifier.hpp:1: an identifier names megatron: say what it does, not who does it")
