# Platforms of SimGrid, and networks of switches and cables. How a case is written stands at the top of cases.cmake.
if(NOT COMMAND cli)
  return()
endif()

# A program of SimGrid loads what was exported, and finds the bandwidth of a ring that `collective` prints.
add_executable(ring_on_platform ${CMAKE_CURRENT_LIST_DIR}/../simgrid/ring_on_platform.cpp)
target_link_libraries(ring_on_platform PRIVATE PkgConfig::SimGrid stepsim_options)

function(same_ring name)
  cli("a ring on the exported ${name}" ARGS ${ARGN} --as simgrid -o cluster.xml
    SHELL "cd @WORK@; \"$@\" || exit; shift 2; set -- $(echo \"$@\" | sed 's/--as.*//')
      @BUILD@/stepsim collective all_reduce --cluster \"$@\" --algorithm ring --protocol simple --sizes 1GiB --json |
        grep -o '\"busbw_GBps\": [0-9.e+-]*' | cut -d ' ' -f 2 >ours
      @BUILD@/tests/ring_on_platform cluster.xml 1073741824 simple --log=root.thresh:critical >theirs
      paste ours theirs | awk '{ d = $1 * 1e9 / $2 - 1; print (NF == 2 && d < 1e-6 && d > -1e-6) ? \"same\" : \"not the same: \" $0 }'"
    OUTPUT "\nsame\n$")
endfunction()
same_ring("h100-8" export h100-8)
same_ring("h100-8 x4" export h100-8 --nodes 4)
same_ring("alps" export alps --nodes 3)
same_ring("superpod-a100 x2" export superpod-a100 --nodes 2)
same_ring("l40s-8 over sockets" export l40s-8 --nodes 4 --network ethernet-100g)

cli("an exported platform says power and what it was made from" ARGS export gh200-1 --as simgrid -o out/one.xml
  SHELL "\"$@\" && cat out/one.xml"
  OUTPUT "out/one.xml: 1 GPUs? of 1 node of gh200-1\n.*<prop id=\"node.simple.step_s\" value=\"[0-9.e-]+\"/>.*<host id=\"gpu0\" speed=\"[0-9.e+]+f\">\n *<prop id=\"gpu\" value=\"gh200[a-z0-9-]*\"/>.*<prop id=\"wattage_per_state\" value=\"[0-9]+:[0-9]+:[0-9]+\"/>")
cli("a platform of too many GPUs" ARGS export superpod-h100 --nodes 65 --as simgrid -o out/big.xml CODE 2
  ERROR "--as simgrid: a route between any two of 520 GPUs takes minutes to load; expected at most 512: say fewer --nodes")
cli("a platform of a misspelt cluster" ARGS export superpod-h10 --as simgrid -o out/x.xml CODE 2
  ERROR "no cluster or node \"superpod-h10\" (did you mean \"superpod-h100\"?); `stepsim list nodes` and `stepsim list clusters` name them")
cli("a platform without a place" ARGS export h100-8 --as simgrid CODE 2 ERROR "-o FILE is missing: where the file goes")
cli("a platform with settings" ARGS export h100-8 --as simgrid -o out/x.xml --set a=b CODE 2
  ERROR "--set: expected with a scenario, not with a cluster")
cli("nodes of a scenario's file" ARGS export @ROOT@/tests/cli/tiny.yaml --nodes 2 --as torchtitan -o out/x.toml CODE 2
  ERROR "--nodes: expected with --as simgrid alone")

set(files ${CMAKE_CURRENT_LIST_DIR}/platforms)
cli("a collective on a platform of SimGrid" ARGS collective all_reduce --platform p.xml --algorithm ring --sizes 1GiB
  SHELL "cp @ROOT@/tests/cli/platforms/fat-tree.xml p.xml; \"$@\""
  OUTPUT "^all_reduce of 16 ranks on 16 x h100-8 \\(NVIDIA H100 [^)]*\\) over ndr-rail \\(costs of its library,[ \n]cables of p.xml\\)\n.*\n1 GiB .* ring .* link_from_")
cli("some hosts of a platform" ARGS collective all_reduce --platform ${files}/fat-tree.xml --placement 0,4,8-9 --sizes 1GiB
  OUTPUT "^all_reduce of 4 ranks on 4 x h100-8 ")
cli("more nodes than a platform has hosts" ARGS collective all_reduce --platform ${files}/fat-tree.xml --nodes 17 --sizes 1GiB CODE 2
  ERROR "nodes: ${files}/fat-tree.xml has 16 nodes, not 17")
cli("a node without the GPU that hosts name" ARGS collective all_reduce --platform ${files}/fat-tree.xml --cluster mi300x-8 --sizes 1GiB CODE 2
  ERROR "${files}/fat-tree.xml:5: host: \"n0\": mi300x-8 has no h100-sxm, but mi300x")
cli("a platform that is not there" ARGS collective all_reduce --platform none.xml --sizes 1GiB CODE 2 ERROR_MATCHES "^stepsim: none.xml: ")
cli("a misspelt property of hosts" ARGS collective all_reduce --platform p.xml --sizes 1GiB CODE 2
  SHELL "sed 's/\"gpu\"/\"GPU\"/' @ROOT@/tests/cli/platforms/fat-tree.xml >p.xml; \"$@\""
  ERROR "p.xml:5: host: \"n0\": expected a property \"gpu\" or \"node\", found \"GPU\"")
cli("a step on a platform of SimGrid" ARGS run ${files}/on-platform.yaml --samples 0 OUTPUT "16 .*h100-8")
cli("a step on some hosts of a platform" ARGS run ${files}/on-platform.yaml --samples 0 --set cluster.placement=0-7 --json
  KEYS step_time_s)
cli("a misspelt placement" ARGS run ${files}/on-platform.yaml --samples 0 --set cluster.placement=0- CODE 2
  ERROR_MATCHES "cluster.placement: expected nodes such as 0,1 or 0-7, found \"0-\"")
cli("a placement of another size" ARGS run ${files}/on-platform.yaml --samples 0 --set cluster.placement=0-3 --set cluster.nodes=5 CODE 2
  ERROR_MATCHES "placement: expected 5 nodes, found 4")

function(on_tiers name)
  cli("${name}" ${ARGN} SHELL "mkdir -p own/topology/networks && cp @ROOT@/tests/cli/platforms/tiers.yaml own/topology/networks && \"$@\"")
endfunction()
set(tiers --data @ROOT@ --data own collective all_reduce --cluster h100-8 --network tiers --algorithm ring --sizes 1GiB)
on_tiers("show a network of tiers" ARGS --data @ROOT@ --data own show tiers
  OUTPUT "^tiers \\(network\\): [^\n]*\n  [0-9]+ switches, places for 8 nodes\n.*\ntiers.spine.oversubscription .*\ncables.worn.bandwidth ")
on_tiers("a cable that is narrower is the busiest" ARGS ${tiers} --nodes 4 OUTPUT " ring +simple +(leaf1.3>spine0.0|spine0.0>leaf1.3)\n")
on_tiers("nodes that stand elsewhere do not meet it" ARGS ${tiers} --placement 4-7 OUTPUT " ring +simple +leaf[23].[0-7]>spine1.[01]\n")
on_tiers("more nodes than tiers have places for" ARGS ${tiers} --nodes 9 CODE 2 ERROR "nodes: tiers has places for 8 nodes, not 9")
on_tiers("a node in two places" ARGS ${tiers} --placement 1,2,1 CODE 2 ERROR "placement: node 1 is listed twice")
on_tiers("what is guessed of tiers is named" ARGS ${tiers} --nodes 8 OUTPUT "guesses among the constants [^\n]*(\n[^\n]*)*network.tiers.core.bandwidth")
