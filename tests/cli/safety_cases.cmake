# What must not be lost, and what a file of somebody else must not be able to do. How a case is written stands in cases.cmake.
if(NOT COMMAND cli)
  return()
endif()

# ---- a worker that dies: its processor time is limited, and one point has more work than that ----
set(begin "cp @ROOT@/tests/cli/tiny.yaml . || exit 9; ulimit -c 0; ulimit -t 2")
set(ended "a worker ended without an answer \\(signal 9: Killed\\)")
# Where all micro-batches go forward first, none of them can stand for others.
set(poisoned sweep tiny.yaml --set stack=megatron --set "strategy={pipeline_parallel: {size: 2, schedule: gpipe}}"
  --vary job.gradient_accumulation=1,65536,2 --workers 1 -o found)
cli("a sweep with a point that kills its worker is written, and resumed where it lacks an answer" SLOW ARGS ${poisoned}
  SHELL "${begin}; \"$@\" >first.txt 2>said.txt; echo code $?; cut -d, -f1-3 found.csv; tail -n +2 found.journal | cut -f1
    \"$@\" >second.txt 2>/dev/null; cmp first.txt second.txt && tail -n +2 found.journal | cut -f1; head -n 1 first.txt second.txt; cat said.txt"
  OUTPUT "^code 3\njob.gradient_accumulation,feasible,reason\n1,true,\n65536,false,${ended}\n2,true,\n0\n2\n0\n2\n.*stepsim: 1 of 3 points got no answer; their rows say why. The same command computes only those again\n$")
# ---- work that no machine can bear is refused before it begins ----
set(kept llama32-3b-sft-zero3 --set job.global_batch=null --set job.gradient_accumulation=65536)
cli("a kept step of very many micro-batches" ARGS run ${kept} -o out/step.h5 CODE 2
  ERROR "this takes 489 million operations, about 83.2 GB, more than the budget of 50 million: take fewer micro-batches (job.gradient_accumulation), or allow it with --budget 490000000")
cli("a step of very many micro-batches that is not kept" ARGS run ${kept} --brief OUTPUT "a step")
cli("very many flows" ARGS collective all_to_all --sizes 1MiB --cluster h100-8 --nodes 1024 --fold off CODE 2
  ERROR "this takes 201 million operations, about 34.2 GB, more than the budget of 50 million: take fewer ranks or --fold auto, or allow it with --budget 202000000")
cli("very many rounds" ARGS collective all_gather --sizes 1MiB --cluster h100-8 --nodes 256 --detail stepped CODE 2
  ERROR "this takes 83.9 million operations, about 14.3 GB, more than the budget of 50 million: take fewer ranks or --detail fluid, or allow it with --budget 84000000")
cli("few flows, and a budget for fewer" ARGS collective all_to_all --sizes 1MiB --cluster h100-8 --nodes 8 --fold off --budget 1000 CODE 2
  ERROR "this takes 0.0123 million operations, about 0.00209 GB, more than the budget of 0.001 million: take fewer ranks or --fold auto, or allow it with --budget 1000000")
cli("a budget in words" ARGS run @ROOT@/tests/cli/tiny.yaml --budget lots CODE 2
  ERROR "--set: job.budget: expected a plain number, found \"lots\"")

# ---- files that no person writes ----
foreach(reader "run large.json" "run large.sh" "run large.py")
  separate_arguments(words UNIX_COMMAND "${reader}")
  list(GET words -1 file)
  cli("${file} of 17 MiB" ARGS ${words} CODE 2 SHELL "head -c 17825792 /dev/zero | tr '\\0' ' ' >${file}; \"$@\"" ERROR "${file}: is larger than 16 MiB")
endforeach()

# ---- what this machine does not allow is no bug ----
# Root is not limited. Who is may enter no checkout in root's home, so one right of root's is kept.
cli("no more processes" ARGS sweep llama32-3b-sft-zero3 --vary job.micro_batch=1,2 CODE 2
  SHELL "[ $(id -u) = 0 ] && command -v setpriv >/dev/null || { echo 'skipped: needs root, and setpriv'; exit 2; }
    exec setpriv --reuid 65533 --clear-groups --inh-caps +dac_override --ambient-caps +dac_override bash -c 'ulimit -u 1; exec \"$@\"' bash \"$@\""
  ERROR "this machine, or a limit of this shell, allows no more: no process for a worker: Resource temporarily unavailable")

# ---- two sweeps, one journal ----
cli("a journal that another sweep writes" HEAVY ARGS sweep tiny.yaml --vary job.micro_batch=1:5000 --workers 1 -o two CODE 2
  SHELL "cp @ROOT@/tests/cli/tiny.yaml .; \"$@\" >/dev/null & other=$!; touch two.journal
    for i in {1..1000}; do [ $(wc -l <two.journal) -gt 2 ] && break; sleep 0.01; done
    kill -STOP $other; \"$@\"; code=$?; kill -9 $other; exit $code"
  ERROR "two.journal: is being written by another sweep")
cli("a file that only has the name of a journal" ARGS sweep tiny.yaml --vary job.micro_batch=1,2 -o notes CODE 2
  SHELL "cp @ROOT@/tests/cli/tiny.yaml .; printf 'my notes' >notes.journal; \"$@\"; code=$?; [ \"$(cat notes.journal)\" = 'my notes' ] || exit 9; exit $code"
  ERROR "notes.journal: is no journal of a sweep, and stays as it is: give this one another name with --output")
cli("a journal that was cut off in its first line" ARGS sweep tiny.yaml --vary job.micro_batch=1,2 -o cut
  SHELL "cp @ROOT@/tests/cli/tiny.yaml .; printf 'stepsim sweep 1 ' >cut.journal; \"$@\" >/dev/null && ls cut.*" OUTPUT "^cut.csv\ncut.h5\n$")

# ---- an output that is an input ----
# kept(NAME FILE OTHER WORDS...): the command is refused, and FILE, which is written as OTHER, is as it was.
function(kept name file other)
  set(again "is read by this command and would be overwritten: name another file")
  if(NOT file STREQUAL other)
    set(again "is ${file}, which ${again}")
    string(REPLACE "which is read" "which is read" again "${again}")
  endif()
  cli("${name}" ARGS ${ARGN} CODE 2 ERROR "${other}: ${again}"
    SHELL "cp @ROOT@/tests/cli/tiny.yaml .; ln -s tiny.yaml link.yaml; echo '{\"optimizer\": {\"type\": \"AdamW\"}}' >zero.json; cp zero.json zero.csv
      @BUILD@/stepsim run tiny.yaml -o run.h5 >/dev/null && @BUILD@/stepsim sweep tiny.yaml --vary job.micro_batch=1,2 -o table >/dev/null || exit 9
      cp ${file} before; \"$@\"; code=$?; cmp before ${file} || exit 9; exit $code")
endfunction()
kept("run over its scenario" tiny.yaml tiny.yaml run tiny.yaml -o tiny.yaml)
kept("run over its scenario by another path" tiny.yaml ./link.yaml run tiny.yaml -o ./link.yaml)
kept("run over DeepSpeed's file" zero.json zero.json run tiny.yaml --set strategy=\{deepspeed:\ zero.json\} -o zero.json)
kept("report over its run" run.h5 run.h5 report run.h5 -o run.h5)
kept("report over its scenario" tiny.yaml link.yaml report tiny.yaml -o link.yaml)
kept("export over its run" run.h5 run.h5 export run.h5 --perfetto run.h5)
kept("export for PajeNG over its run" run.h5 run.h5 export run.h5 --as paje -o run.h5)
kept("export of memory over its run" run.h5 run.h5 export run.h5 --memory-viz run.h5)
kept("export over its scenario" tiny.yaml tiny.yaml export tiny.yaml --perfetto tiny.yaml)
kept("merge over its shard" table.h5 table.h5 merge table.h5 -o table)
kept("sweep over DeepSpeed's file" zero.csv zero.csv
  sweep tiny.yaml --set strategy=\{deepspeed:\ zero.csv\} --vary job.micro_batch=1,2 -o zero)

# ---- who reads goes away ----
# Long outputs and short ones, in one piece and in several; the exit code is that of the answer, and files are written all the same.
cli("a reader that goes away changes nothing" SHELL "set -- @BUILD@/stepsim; cp @ROOT@/tests/cli/tiny.yaml .; \"$@\" run tiny.yaml --samples 0 -o a.h5 >/dev/null
    said() { { sleep 0.2; \"$stepsim\" \"$@\" 2>>errors; echo $? \"$1\" >>codes; } | true; }; stepsim=$1
    said list; said --help; said --help=man; said show h100-8; said run tiny.yaml --samples 0 -o b.h5; said memory tiny.yaml; said memory mpt7b-zero2-oom
    said sweep tiny.yaml --vary job.micro_batch=1,2; said diff tiny.yaml mpt7b-zero2; said run tiny.yaml --samples 0 --json
    said explain tiny.yaml --set strategy.zero=2 --samples 0 --replays 1 --csv; said run none.yaml; cat errors >&2; cmp a.h5 b.h5; grep -v ^0 codes"
  OUTPUT "^1 memory\n2 run\n$" ERROR_MATCHES "^stepsim: [^\n]*none.yaml[^\n]*\n$")
if(STEPSIM_PYTHON)
  add_test(NAME cli/printable COMMAND ${STEPSIM_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/check_printable.py
    $<TARGET_FILE:stepsim> ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_BINARY_DIR}/cli/printable)
  set_tests_properties(cli/printable PROPERTIES LABELS "cli;quick;heavy")
  file(GLOB files_of_others ${CMAKE_CURRENT_LIST_DIR}/axolotl/*.yaml ${CMAKE_CURRENT_LIST_DIR}/scripts/*.sh ${CMAKE_CURRENT_LIST_DIR}/scripts/*.yaml
    ${CMAKE_CURRENT_LIST_DIR}/scripts/dpo.arguments.json)
  list(FILTER files_of_others EXCLUDE REGEX "/(two|ppo)[.]")
  add_test(NAME cli/screen COMMAND ${STEPSIM_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/check_screen.py
    $<TARGET_FILE:stepsim> ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_BINARY_DIR}/cli/screen ${files_of_others})
  add_test(NAME cli/advice COMMAND ${STEPSIM_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/check_advice.py
    $<TARGET_FILE:stepsim> ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_BINARY_DIR}/cli/advice)
  set_tests_properties(cli/screen cli/advice PROPERTIES LABELS "cli;quick;heavy")
endif()

# ---- files that are there already, and their rights ----
cli("an output behind a link keeps link, mode and place" ARGS run @ROOT@/tests/cli/tiny.yaml --samples 0 --faster 0 -o link.h5
  SHELL "echo old >target.h5; chmod 640 target.h5; ln -s target.h5 link.h5; \"$@\" >/dev/null; stat -c '%F %a' link.h5 target.h5; head -c 4 target.h5 | tail -c 3"
  OUTPUT "^symbolic link 777\nregular file 640\nHDF$")
cli("an output behind a link that leads to nothing is made where it leads" ARGS run @ROOT@/tests/cli/tiny.yaml --samples 0 --faster 0 -o link.h5
  SHELL "mkdir there; ln -s there/second second; ln -s ../second there/first; ln -s there/first link.h5; ln -s end.h5 there/second; \"$@\" >/dev/null
    stat -c %F link.h5 second there/first there/second there/end.h5; ls -A . there | grep h5"
  OUTPUT "^symbolic link\nsymbolic link\nsymbolic link\nsymbolic link\nregular file\nlink.h5\nend.h5\n$")
cli("an output behind a link into no folder" ARGS run @ROOT@/tests/cli/tiny.yaml --samples 0 --faster 0 -o link.h5 CODE 2
  SHELL "ln -s none/end.h5 link.h5; \"$@\"" ERROR "link.h5: cannot be written: there is no folder \"none\"")
cli("an output behind links that lead to themselves" ARGS run @ROOT@/tests/cli/tiny.yaml --samples 0 --faster 0 -o link.h5 CODE 2
  SHELL "ln -s link.h5 link.h5; \"$@\"" ERROR "link.h5: cannot be written: Too many levels of symbolic links")
cli("a file that may not grow" ARGS run @ROOT@/tests/cli/tiny.yaml --samples 0 --faster 0 -o out/a.h5 CODE 2
  SHELL "ulimit -f 8; \"$@\"" ERROR "out/a.h5: cannot be written: File too large")
cli("a page of a file whose name is no text" ARGS report
  SHELL "name=$(printf 'a\\377.yaml'); cp @ROOT@/tests/cli/tiny.yaml \"$name\"; \"$@\" \"$name\" -o out/page.html >/dev/null && iconv -f UTF-8 -t UTF-16 out/page.html >/dev/null && echo text"
  OUTPUT "^text\n$")
# A time that grew with the square of the keys would be minutes.
cli("very many keys of DeepSpeed's" ARGS run --full tiny.yaml --set strategy.deepspeed=many.json --samples 0 --faster 0
  SHELL "cp @ROOT@/tests/cli/tiny.yaml .; { echo '{'; seq -f '\"zz%.0fz\": 1,' 100000; echo '\"zero_optimization\": {\"stage\": 3}}'; } >many.json
    ulimit -t 20; \"$@\" | grep -o 'and 99800 .*'"
  OUTPUT "^and 99800 more that are no keys of DeepSpeed\n$")
cli("very many mistakes" ARGS run @WORK@/many.yaml CODE 2
  SHELL "{ cat @ROOT@/tests/cli/tiny.yaml; seq -f 'k%.0f: 1' 100000; } >many.yaml; timeout 20 \"$@\" 2>&1 | tail -n 1 >&2; exit 2"
  ERROR_MATCHES "many\\.yaml:[0-9]+: and 998[0-9][0-9] more\n$")
