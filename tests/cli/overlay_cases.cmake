# A catalogue over the installed one. How a case is written stands in cases.cmake.
if(NOT COMMAND cli)
  return()
endif()

# overlay(NAME FOLDER BODY ...): FOLDER/topology/nodes/h100-8.yaml of the case's own folder holds BODY.
function(overlay name folder body)
  cli("${name}" ${ARGN} SHELL "mkdir -p ${folder}/topology/nodes; cat >${folder}/topology/nodes/h100-8.yaml <<'end'
${body}
end
    \"$@\"")
endfunction()
set(renamed "name: h100-8\nlike: h100-8\ntitle: a name of my own")
set(run_it run --full @ROOT@/tests/cli/tiny.yaml --set cluster.node=h100-8 --set stack=deepspeed-hf --samples 0)

overlay("an overlay changes what it says and no more" over "${renamed}" ARGS --data over show h100-8
  OUTPUT "^h100-8 \\(node\\): a name of my own\n  GPU: h100-sxm\n.*links.nvlink.bandwidth ")
overlay("the last overlay goes before the others" two "${renamed}" ARGS --data two --data @ROOT@ show h100-8 OUTPUT "^h100-8 \\(node\\): [^a]")
overlay("show names an overlay" over "${renamed}" ARGS --data over show h100-8
  OUTPUT "  not of the installed catalogue: over/topology/nodes/h100-8.yaml\n")
overlay("collective names an overlay" over "${renamed}" ARGS --data over collective all_reduce --cluster h100-8 --sizes 1MiB
  OUTPUT "\nnote: not of the installed catalogue: over/topology/nodes/h100-8.yaml\n\nplayed by SimGrid [^\n]+\n$")
overlay("collective names an overlay in JSON" over "${renamed}" ARGS --data over collective all_reduce --cluster h100-8 --sizes 1MiB --json
  KEYS notes/0)
overlay("an overlay is named in the output" over "${renamed}" ARGS --data @WORK@/over ${run_it}
  OUTPUT "\nnote: not of the installed catalogue: @WORK@/over/topology/nodes/h100-8.yaml\n")
overlay("an overlay is named in the JSON" over "${renamed}" ARGS --data @WORK@/over ${run_it} --json
  OUTPUT "\"notes\": \\[[^]]*not of the installed catalogue: @WORK@/over/topology/nodes/h100-8.yaml")
overlay("an overlay of which nothing is used is not named" over "${renamed}" ARGS --data @WORK@/over run @ROOT@/tests/cli/tiny.yaml --json
  OUTPUT "\"notes\": \\[\\]")
overlay("a mistake in an overlay names its file" over "${renamed}\nnoise: 3" ARGS --data over collective all_reduce --cluster h100-8 --sizes 1MiB CODE 2
  ERROR_MATCHES "^stepsim: over/topology/nodes/h100-8.yaml:4: noise: unknown key")
overlay("a misspelt name finds the nearest of all folders" over "${renamed}" ARGS --data over collective all_reduce --cluster h100-8x CODE 2
  ERROR_MATCHES "no cluster or node \"h100-8x\" \\(did you mean \"h100-8\"\\?\\)")
cli("an overlay that is like itself with nothing below" ARGS --data over collective all_reduce --cluster mine --sizes 1MiB CODE 2
  SHELL "mkdir -p over/topology/nodes; printf 'name: mine\\nlike: mine\\n' >over/topology/nodes/mine.yaml; \"$@\""
  ERROR "over/topology/nodes/mine.yaml: like: entries that are like each other form a circle")
cli("a whole new entry in an overlay" ARGS --data over show my-scenario
  SHELL "mkdir -p over/scenarios; sed 's/^name: tiny/name: my own/' @ROOT@/tests/cli/tiny.yaml >over/scenarios/my-scenario.yaml; \"$@\"" OUTPUT "my own")
cli("a scenario of an overlay is named in the output" ARGS --data over run --full my-scenario --samples 0
  SHELL "mkdir -p over/scenarios; cp @ROOT@/tests/cli/tiny.yaml over/scenarios/my-scenario.yaml; \"$@\""
  OUTPUT "\nnote: not of the installed catalogue: over/scenarios/my-scenario.yaml\n")

# The folder of the user's own: config/ is XDG_CONFIG_HOME in every case.
overlay("the user's own catalogue is found" config/stepsim "${renamed}" ARGS show h100-8 OUTPUT "^h100-8 \\(node\\): a name of my own\n")
overlay("the user's own catalogue is named in the output" config/stepsim "${renamed}" ARGS ${run_it}
  OUTPUT "\nnote: not of the installed catalogue: @WORK@/config/stepsim/topology/nodes/h100-8.yaml\n")
overlay("without the user's own catalogue" config/stepsim "${renamed}" ARGS --no-user-data show h100-8 OUTPUT "^h100-8 \\(node\\): [^a]")
overlay("--data goes before the user's own catalogue" config/stepsim "${renamed}" ARGS --data @ROOT@ show h100-8 OUTPUT "^h100-8 \\(node\\): [^a]")
cli("the user's own catalogue in the home folder" ARGS show mine
  SHELL "mkdir -p .config/stepsim/topology/gpus; printf 'name: mine\\nlike: h100-sxm\\ntitle: at home\\n' >.config/stepsim/topology/gpus/mine.yaml
    unset XDG_CONFIG_HOME; HOME=@WORK@ \"$@\"" OUTPUT "^mine \\(GPU\\): at home\n")
cli("a folder of another kind in the user's configuration" ARGS list gpus SHELL "mkdir -p config/stepsim/themes; \"$@\"" OUTPUT "h100-sxm")
