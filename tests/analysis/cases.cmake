# What other programs see of a step: Trace Event JSON against its rules and against the HDF5 trace.
if(STEPSIM_PYTHON AND TARGET stepsim)
  foreach(scenario mpt7b-zero3-offload llama32-3b-sft-zero3)
    add_test(NAME analysis/trace_events_${scenario}
      COMMAND ${STEPSIM_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/check_trace_events.py
              $<TARGET_FILE:stepsim> ${CMAKE_CURRENT_BINARY_DIR}/trace_events/${scenario} ${scenario})
    set_tests_properties(analysis/trace_events_${scenario} PROPERTIES LABELS analysis SKIP_RETURN_CODE 77)  # no h5py
  endforeach()
endif()
# The same for PajeNG: the rules that its reader has, and the reader itself where it is installed.
if(STEPSIM_PYTHON AND TARGET stepsim)
  foreach(scenario llama32-3b-sft-zero3 mpt7b-zero3-offload llama33-70b-pipeline)  # the last: sends that overlap
    add_test(NAME analysis/paje_${scenario}
      COMMAND ${STEPSIM_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/check_paje.py
              $<TARGET_FILE:stepsim> ${CMAKE_CURRENT_BINARY_DIR}/paje/${scenario} ${scenario})
    set_tests_properties(analysis/paje_${scenario} PROPERTIES LABELS analysis SKIP_RETURN_CODE 77)  # no h5py
  endforeach()
  set_tests_properties(analysis/paje_llama33-70b-pipeline PROPERTIES LABELS "analysis;slow")
endif()
# The same for Chakra's feeder: fields of its schema, dependencies that lead backwards, and the step's time to the last bit.
if(STEPSIM_PYTHON AND TARGET stepsim)
  add_test(NAME analysis/chakra
    COMMAND ${STEPSIM_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/check_chakra.py
            $<TARGET_FILE:stepsim> ${PROJECT_SOURCE_DIR}/python/stepsim/chakra.py ${CMAKE_CURRENT_BINARY_DIR}/chakra)
  set_tests_properties(analysis/chakra PROPERTIES LABELS analysis SKIP_RETURN_CODE 77)  # no h5py
endif()
# Memory as PyTorch's allocator would record it: with room, with segments that expand, over stages, and without room in either way.
if(STEPSIM_PYTHON AND TARGET stepsim)
  foreach(words llama32-3b-sft-zero3 mpt7b-zero2 llama33-70b-pipeline mpt7b-zero2-oom
          "mpt7b-zero2 job.micro_batch=6")
    separate_arguments(list UNIX_COMMAND "${words}")
    string(MAKE_C_IDENTIFIER "${words}" name)
    add_test(NAME analysis/memory_viz_${name}
      COMMAND ${STEPSIM_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/check_memory_viz.py
              $<TARGET_FILE:stepsim> ${CMAKE_CURRENT_BINARY_DIR}/memory_viz/${name} ${list})
    set_tests_properties(analysis/memory_viz_${name} PROPERTIES LABELS analysis)
  endforeach()
endif()
if(STEPSIM_PYTHON AND TARGET stepsim)
  add_test(NAME analysis/memory_beside
    COMMAND ${STEPSIM_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/check_memory_beside.py
            $<TARGET_FILE:stepsim> ${CMAKE_CURRENT_BINARY_DIR}/memory_beside)
  set_tests_properties(analysis/memory_beside PROPERTIES LABELS analysis)
endif()
if(STEPSIM_PYTHON AND TARGET stepsim)
  add_test(NAME analysis/report_page
    COMMAND ${STEPSIM_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/check_page.py
            $<TARGET_FILE:stepsim> ${CMAKE_CURRENT_BINARY_DIR}/report_page ${PROJECT_SOURCE_DIR})
  set_tests_properties(analysis/report_page PROPERTIES LABELS "analysis;slow" SKIP_RETURN_CODE 77)  # no Chromium
endif()
