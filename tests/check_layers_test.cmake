# cmake -D WORK=<scratch folder> -P check_layers_test.cmake
# Plants one offence per rule in a small tree and requires that check_layers.cmake names each, fails, and leaves
# code alone that only talks about them.
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE ${WORK})
set(expected "")

# plant(FILE LINE CODE RULE [ALONE]): CODE in FILE must be reported at LINE with a text matching RULE. A source has a
# header of its name beside it unless it stands alone.
function(plant file line code rule)
  file(WRITE ${WORK}/${file} "${code}")
  if(file MATCHES "^(.*)\\.cpp$" AND NOT ARGN STREQUAL "ALONE")
    file(WRITE ${WORK}/${CMAKE_MATCH_1}.hpp "")
  endif()
  list(APPEND expected "${file}:${line}: [^\n]*${rule}")
  set(expected "${expected}" PARENT_SCOPE)
endfunction()

plant(sim/upward.cpp 2 "// why\n#include \"topology/gpu.hpp\"\n" "may not include topology/")
plant(workloads/sideways.hpp 1 "#include \"scenarios/scenario.hpp\"\n" "may not include scenarios/")
plant(topology/relative.cpp 1 "#include \"gpu.hpp\"\n" "from the root")
plant(topology/engine.cpp 1 "#include <simgrid/s4u.hpp>\n" "SimGrid belongs in")
plant(sim/file.cpp 1 "#include <hdf5.h>\n" "HDF5 belongs in")
plant(scenarios/read.cpp 1 "#include <yaml.h>\n" "libyaml belongs in")
plant(scenarios/tables.cpp 1 "#include <toml++/toml.h>\n" "toml.. belongs in")
plant(analysis/graph.cpp 1 "#include <boost/graph/adjacency_list.hpp>\n" "Boost.Graph belongs in")
plant(cli/socket.cpp 1 "#include <boost/beast/http.hpp>\n" "sockets belong in")
plant(sim/options.cpp 1 "#include <boost/program_options.hpp>\n" "belongs in cli/")
plant(cli/options.hpp 1 "#include <boost/program_options.hpp>\n" "a header may not include")
plant(analysis/metrics.cpp 1 "#include \"sim/engine/own/replay.hpp\"\n" "may simulate")
plant(sim/base.hpp 2 "struct Base {\n  virtual void run();\n};\n" "no `virtual`")
plant(sim/heap.cpp 1 "int* p = new int;\n" "no `new i`")
plant(sim/shared.cpp 1 "std::shared_ptr<int> p;\n" "no `shared_ptr<i`")
plant(cli/leave.cpp 1 "void f() { std::exit(1); }\n" "no `exit")
plant(sim/dice.cpp 4 "/* a\n   long\n   comment */\nint i = rand();\n" "no `rand")
plant(analysis/now.cpp 1 "auto t = std::chrono::system_clock::now();\n" "no `system_clock`")
plant(scenarios/home.cpp 1 "auto home = std::getenv(\"HOME\");\n" "no `getenv`")
plant(sim/loud.cpp 1 "void f() { std::cout << 1; }\n" "never print")
plant(sim/fmt.cpp 1 "void f() { fmt::print(\"hello\"); }\n" "never print")
plant(cli/loud.cpp 1 "void f() { fmt::print(stderr, x); }\n" "leave by say")
plant(sim/open.hpp 1 "using namespace std;\n" "no `using namespace`")
plant(sim/leak.hpp 1 "YAML::Node root;\n" "only fmt's")
plant(sim/base/down.cpp 1 "#include \"sim/trace.hpp\"\n" "sim/base/ may not include sim/\\./")
plant(workloads/model/later.hpp 2 "\n#include \"workloads/sharding/zero3/zero3.hpp\"\n"
      "workloads/model/ may not include workloads/sharding/")
plant(analysis/studies/predict/later.cpp 1 "#include \"analysis/studies/sweep/sweep.hpp\"\n"
      "analysis/studies/predict/ may not include analysis/studies/sweep/")
plant(analysis/beside.hpp 1 "#include \"analysis/report/page.hpp\"\n" "analysis/\\./ may not include analysis/report/")
plant(workloads/shed/new.hpp 1 "" "workloads/ has no room shed")
plant(workloads/step/alone.cpp 1 "" "there is no workloads/step/alone.hpp" ALONE)
plant(scenarios/foreign/text/up.cpp 1 "#include \"scenarios/read/entries.hpp\"\n"
      "scenarios/foreign/text/ may not include scenarios/read/")
plant(scenarios/keys/beside.cpp 1 "#include \"scenarios/scenario.hpp\"\n" "scenarios/keys/ may not include scenarios/\\./")
plant(scenarios/foreign/programs/verl/other.cpp 1 "#include \"scenarios/foreign/programs/slime/slime.hpp\"\n"
      "programs/verl/ may not include scenarios/foreign/programs/slime/: what both need")
plant(scenarios/foreign/programs/accelerate/later.cpp 1 "#include \"scenarios/foreign/programs/hf/hf.hpp\"\n"
      "programs/accelerate/ may not include scenarios/foreign/programs/hf/: it comes later")
plant(scenarios/foreign/new/new.hpp 1 "" "scenarios/ has no room foreign/new")
plant(cli/beside.cpp 1 "#include \"cli/serve/server.hpp\"\n" "cli/\\./ may not include cli/serve/")

# Every room of a list holds something, but for one, which is an offence.
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/check_layers.cmake lists REGEX "^set\\(rooms_")
foreach(line IN LISTS lists)
  string(REGEX MATCH "^set\\(rooms_([^ ]+) (.*)\\)$" line "${line}")
  set(parent ${CMAKE_MATCH_1})
  separate_arguments(rooms UNIX_COMMAND "${CMAKE_MATCH_2}")
  foreach(room IN LISTS rooms)
    if(NOT "${parent}/${room}" STREQUAL "workloads/kernels")
      file(WRITE ${WORK}/${parent}/${room}/here.hpp "")
    endif()
  endforeach()
endforeach()
file(WRITE ${WORK}/tests/here.hpp "")
list(APPEND expected "rooms_workloads names workloads/kernels/, which is empty")

# None of this is an offence.
file(WRITE ${WORK}/workloads/sharding/zero3/fine.hpp
     "#include \"workloads/sharding/fsdp/fsdp.hpp\"\n#include \"workloads/model/model.hpp\"\n")
file(WRITE ${WORK}/analysis/studies/fine.hpp "#include \"analysis/breakdown.hpp\"\n#include \"sim/base/units.hpp\"\n")
file(WRITE ${WORK}/analysis/studies/fine.cpp [=[
#include "sim/engine/own/replay.hpp"
#include <vector>
// A new node; the virtual cluster may exit(1), see topology/gpus/*.yaml.
/* rand() and
   getenv */
const char* text = "new text: \" std::cout exit(";
const char quote = '"'; const char* other = "virtual x";
const char* page = R"html(<script>
  const m = new Map(); // "virtual x
)html";
int operand(int new_size) { return snprintf(nullptr, 0, "") + new_size; }
void child() { _exit(0); }
]=])
file(WRITE ${WORK}/scenarios/foreign/programs/verl/fine.hpp
     "#include \"scenarios/foreign/programs/megatron/megatron.hpp\"\n#include \"scenarios/foreign/text/text.hpp\"\n")
file(WRITE ${WORK}/cli/fine.cpp "#include <boost/program_options.hpp>\nvoid f() { say(\"hello\"); }\n")

execute_process(COMMAND ${CMAKE_COMMAND} -D ROOT=${WORK} -P ${CMAKE_CURRENT_LIST_DIR}/check_layers.cmake
                RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
foreach(line IN LISTS expected)
  if(NOT output MATCHES "${line}")
    message(SEND_ERROR "not reported: ${line}")
  endif()
endforeach()
list(LENGTH expected count)
if(result EQUAL 0 OR NOT output MATCHES "structure: ${count}\n")
  message(SEND_ERROR "exit code ${result}, expected failure with exactly ${count} offences:\n${output}")
endif()
