# Trace files as another program sees them: the example in docs/trace-format.md, and files changed with h5py.
add_executable(tiny_trace ${CMAKE_CURRENT_LIST_DIR}/tiny_trace.cpp)
target_link_libraries(tiny_trace PRIVATE stepsim_test_support stepsim_options)
if(STEPSIM_PYTHON)
  add_test(NAME sim/read_trace
    COMMAND ${STEPSIM_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/read_trace.py
            ${PROJECT_SOURCE_DIR}/docs/trace-format.md $<TARGET_FILE:tiny_trace>)
  set_tests_properties(sim/read_trace PROPERTIES LABELS sim SKIP_RETURN_CODE 77)  # no h5py
endif()

# Pickles that Python writes.
add_executable(pickle_as_json ${CMAKE_CURRENT_LIST_DIR}/pickle_as_json.cpp)
target_link_libraries(pickle_as_json PRIVATE stepsim_test_support stepsim_options)
if(STEPSIM_PYTHON)
  add_test(NAME sim/pickles_of_python
    COMMAND ${STEPSIM_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/check_pickles.py $<TARGET_FILE:pickle_as_json>)
  set_tests_properties(sim/pickles_of_python PROPERTIES LABELS "sim;heavy")
endif()
