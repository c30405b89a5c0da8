# Cases of logs that a prediction learns from. How a case is written stands at the top of cases.cmake.
if(NOT COMMAND cli)
  return()
endif()
set(logged "@ROOT@/tests/cli/tiny.yaml")
set(with_log "echo '120/1000 [04:00<30:00,  2.00s/it]' >train.log")

cli("an anchor is written, shown and taken" ARGS anchor ${logged} --log train.log --samples 8 -o out/a.anchor.yaml
  SHELL "${with_log}; \"$@\"; set -e; grep -c draw: out/a.anchor.yaml >/dev/null
    @BUILD@/stepsim run ${logged} --anchor out/a.anchor.yaml --brief; @BUILD@/stepsim memory ${logged} --anchor out/a.anchor.yaml | grep ^anchored; rm -r train.log out/a.anchor.yaml"
  OUTPUT "^tiny.yaml beside train.log: .*slower than the catalogue.*a progress bar, 2.00 s a step.*draws +[0-9]+ of the constants.*take it with --anchor.*anchored on your run of tiny.yaml beside train.log: .*anchored +on your run")
cli("two runs with the same words are the same bytes" ARGS anchor ${logged} --log train.log --samples 8 -o out/a.anchor.yaml
  SHELL "${with_log}; \"$@\" >first && mv out/a.anchor.yaml b.yaml && \"$@\" >second && cmp first second && cmp b.yaml out/a.anchor.yaml; code=$?; rm -r first second b.yaml train.log out/a.anchor.yaml; exit $code")
cli("an anchor as JSON" ARGS anchor ${logged} --log - --samples 8 --json
  SHELL "echo '120/1000 [04:00<30:00,  2.00s/it]' | \"$@\"" KEYS title said measured_s anchored_s anchored_interval_s draws effective_draws moved)
cli("an anchor without a log" ARGS anchor ${logged} CODE 2
  ERROR "--log: is missing: a log of the run, or a line of its progress bar")
cli("an anchor of a log that says nothing" ARGS anchor ${logged} --log @ROOT@/LICENSE CODE 2
  ERROR_MATCHES "LICENSE: holds no progress of a training: expected a line of a progress bar")
cli("an anchor of a log that is not there" ARGS anchor ${logged} --log nothing.log CODE 2 ERROR "nothing.log: cannot be read")
cli("an anchor by another name" ARGS anchor ${logged} --log - -o out/a.yaml CODE 2
  ERROR "--output: expected a name that ends in .anchor.yaml, found \"out/a.yaml\"")
cli("an anchor that is none" ARGS run ${logged} --anchor bad.anchor.yaml CODE 2
  SHELL "printf 'anchor: x\\nsaid: y\\n' >bad.anchor.yaml; \"$@\"; code=$?; rm bad.anchor.yaml; exit $code"
  ERROR_MATCHES "bad.anchor.yaml:1: draws: is missing")
cli("an anchor, and none" ARGS run ${logged} --anchor a --no-anchor CODE 2 ERROR "--anchor and --no-anchor: only one of them can hold")
cli("an anchor of another machine says so" ARGS anchor ${logged} --log train.log --samples 8 -o out/a.anchor.yaml
  SHELL "${with_log}; \"$@\" >/dev/null; @BUILD@/stepsim run ${logged} --cluster h100-8 --set stack=deepspeed-hf --anchor out/a.anchor.yaml --brief; rm train.log out/a.anchor.yaml"
  OUTPUT "the run was of another gpu, node, stack: there the catalogue holds, and what no constant explained is left out")
cli("anchors of one's own folder are taken without a word" ARGS anchor ${logged} --log train.log --samples 8 -o out/a.anchor.yaml
  SHELL "${with_log}; mkdir -p own/stepsim/anchors; \"$@\" >/dev/null; mv out/a.anchor.yaml own/stepsim/anchors
    XDG_CONFIG_HOME=$PWD/own @BUILD@/stepsim run ${logged} --brief; echo without; XDG_CONFIG_HOME=$PWD/own @BUILD@/stepsim run ${logged} --brief --no-anchor | grep -c anchored; rm -r own train.log"
  OUTPUT "anchored on your run.*\nwithout\n0\n")
cli("a diagnosis names faults, tests and a cure" ARGS diagnose llama32-3b-sft-zero3 --log train.log --log nccl.log --samples 8 CODE 1
  SHELL "echo '120/1000 [1:00:00<7:20:00, 30.00s/it]' >train.log; echo 'NCCL INFO Channel 00 : 0[0] -> 1[1] via SHM' >nccl.log; \"$@\"; code=$?; rm train.log nccl.log; exit $code"
  OUTPUT "^measured: 30.0 s a step\nlikely: .*what tells the first two apart.*if it shows that.*cure: ")
cli("a diagnosis of a healthy run" ARGS diagnose llama32-3b-sft-zero3 --log - --samples 8
  SHELL "echo '120/1000 [16:00<2:00:00, 8.00s/it]' | \"$@\"" OUTPUT "\nlikely: nothing is wrong")
cli("a diagnosis as JSON" ARGS diagnose llama32-3b-sft-zero3 --log - --samples 8 --json
  SHELL "echo '120/1000 [16:00<2:00:00, 8.00s/it]' | \"$@\"" KEYS measured_s suspects/0/probability suspects/1/cure)
cli("a diagnosis of a text that is no log" ARGS diagnose ${logged} --log @ROOT@/LICENSE CODE 2
  ERROR_MATCHES "LICENSE: holds no progress of a training")
