# The command line, one case each: cli(NAME ...) runs stepsim in an empty folder and looks at what comes out.
#   ARGS words...           @WORK@ the folder of the case (out/ in it is empty), @DATA@ the data, @ROOT@, @BUILD@
#   CODE 0                  expected exit code; anything but 0 must leave out/ empty
#   ERROR text              all of standard error, after "stepsim: "; @LINE@ is the line that EDIT changed
#   ERROR_MATCHES regex     the same, loosely
#   OUTPUT regex            standard output
#   KEYS key a/0/b...       standard output is JSON and has them
#   EDIT file from to       first makes a copy of the data with the first `from` replaced
#   CUT file bytes          first makes a copy of the data with only the beginning of a file
#   SHELL script            what to do with "$@", the command; may print "skipped: why"
#   HEAVY                   half a minute and more under sanitizers, which leave it out: other cases walk the same code
#   SLOW                    ten seconds and more: ./check leaves it out, too
# Without ERROR or ERROR_MATCHES standard error must be empty.
if(NOT TARGET stepsim)
  return()
endif()

function(cli name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "HEAVY;SLOW" "CODE;ERROR;ERROR_MATCHES;OUTPUT;SHELL" "ARGS;KEYS;EDIT;CUT")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "cli(${name}): what is ${arg_UNPARSED_ARGUMENTS}?")
  endif()
  if(NOT arg_CODE)
    set(arg_CODE 0)
  endif()
  set(speed quick)
  if(arg_SLOW)
    set(speed slow)
  elseif(arg_HEAVY)
    list(APPEND speed heavy)
  endif()
  string(MAKE_C_IDENTIFIER "${name}" folder)
  add_test(NAME "cli/${name}" COMMAND ${CMAKE_COMMAND}
    -D BINARY=$<TARGET_FILE:stepsim> -D ROOT=${PROJECT_SOURCE_DIR} -D BUILD=${PROJECT_BINARY_DIR}
    -D WORK=${CMAKE_CURRENT_BINARY_DIR}/cli/${folder} -D PYTHON=${STEPSIM_PYTHON}
    "-DARGS=${arg_ARGS}" "-DCODE=${arg_CODE}" "-DERROR=${arg_ERROR}" "-DERROR_MATCHES=${arg_ERROR_MATCHES}"
    "-DOUTPUT=${arg_OUTPUT}" "-DKEYS=${arg_KEYS}" "-DEDIT=${arg_EDIT}" "-DCUT=${arg_CUT}" "-DSHELL=${arg_SHELL}"
    -P ${PROJECT_SOURCE_DIR}/tests/support/run_cli.cmake)
  # The search for leaks takes longer than most cases; the tests of the libraries are searched.
  set_tests_properties("cli/${name}" PROPERTIES LABELS "cli;${speed}" SKIP_REGULAR_EXPRESSION "skipped: "
    ENVIRONMENT "ASAN_OPTIONS=detect_leaks=0")
endfunction()

# A collective that is over at once.
set(small collective all_reduce --sizes 1MiB --cluster)

# SimGrid is what tests compare with, and the shared HDF5 brings a web client: to load them is most of a start.
add_test(NAME cli/loads_no_simgrid COMMAND ${CMAKE_OBJDUMP} -p $<TARGET_FILE:stepsim>)
set_tests_properties(cli/loads_no_simgrid PROPERTIES LABELS "cli;quick"
  PASS_REGULAR_EXPRESSION "NEEDED +libfmt" FAIL_REGULAR_EXPRESSION "NEEDED +lib(simgrid|hdf5|curl)")

# ---- help and versions ----
cli("no command prints the help and is a mistake" CODE 2 OUTPUT "usage: stepsim")
cli("help" ARGS --help OUTPUT "commands:.*collective.*list.*show.*--data DIR.*--no-user-data.*installed catalogue: @ROOT@\n.*exit codes")
cli("help by word" ARGS help OUTPUT "usage: stepsim")
cli("version" ARGS --version OUTPUT "^stepsim [0-9]+\\.[0-9]+\\.[0-9]+\n$")
# Every command that the program lists, and every form of its help.
set(listed "$(\"$@\" --help | sed -n '/^commands:/,/^$/s/^  \\([a-z]*\\) .*/\\1/p')")
cli("help of every command"
  SHELL "set -- @BUILD@/stepsim; for command in ${listed}; do
      \"$@\" $command --help >said || exit; head -n 1 said | grep -q \"^usage: stepsim $command\" && grep -q '^examples:' said ||
        { echo \"no good help of $command\"; exit 9; }
      echo $command; done | wc -l" OUTPUT "^2[0-9]\n$")
cli("help in an unknown form" ARGS --help=html CODE 2 ERROR "--help: expected nothing, man, bash or zsh, found \"html\"")
cli("help of a command in an unknown form" ARGS run --help=html CODE 2
  ERROR "--help: expected nothing, man, bash, zsh or tool, found \"html\"")
cli("man pages are without fault"
  SHELL "command -v man >/dev/null || { echo 'skipped: no man here (Debian: apt-get install man-db)'; exit; }
    for page in @BUILD@/pages/man/*.gz; do MANWIDTH=100 man --warnings=all -l $page >>text 2>>faults || exit; done
    cat faults; grep -c '^NAME' text; grep -c -e '^ *--set KEY=VALUE$' text" OUTPUT "^2[0-9]\n[1-9][0-9]*\n$")
# Words as readline hands them over: the last one is completed.
cli("bash completes commands and options"
  SHELL ". @BUILD@/pages/stepsim.bash; complete() { :; }
    try() { COMP_WORDS=(stepsim \"$@\"); COMP_CWORD=$#; _stepsim; echo \"\${COMPREPLY[*]}\"; }
    try me; try --no; try run --outp; try --data x collective --det; try run file"
  OUTPUT "^memory merge\n--no-user-data\n--output\n--detail\n\n$")
cli("zsh takes its completion"
  SHELL "command -v zsh >/dev/null || { echo 'skipped: no zsh here'; exit; }; zsh -n @BUILD@/pages/_stepsim && echo good" OUTPUT "good")
cli("help needs no data" ARGS --data /nowhere collective --help OUTPUT "^usage: stepsim collective")

# ---- what is no command, no option, no value ----
cli("misspelt command" ARGS colective CODE 2
  ERROR "no command \"colective\" (did you mean \"collective\"?); `stepsim --help` lists them")
cli("unknown option before the command" ARGS --dat x list CODE 2
  ERROR "unknown option --dat (did you mean \"--data\"?)")
cli("misspelt option" ARGS ${small} h100-8 --protocl ll CODE 2
  ERROR "unknown option --protocl (did you mean \"--protocol\"?)")
cli("unknown letter" ARGS ${small} h100-8 -x CODE 2 ERROR "unknown option -x")
cli("option without its value" ARGS collective all_reduce --cluster CODE 2 ERROR "--cluster: expected a value")
cli("switch with a value" ARGS list --json=yes CODE 2 ERROR "--json: takes no value")
cli("repeated option" ARGS ${small} h100-8 --cluster h100-8 CODE 2 ERROR "--cluster is given twice")
cli("repeated switch" ARGS list --json --json CODE 2 ERROR "--json is given twice")
cli("data folder without its value" ARGS --data CODE 2 ERROR "--data: expected a value")
cli("data folder that is none" ARGS --data @WORK@/none list CODE 2
  ERROR "@WORK@/none: has none of the folders topology/, workloads/, scenarios/, claims/ and anchors/")
cli("one word too many" ARGS ${small} h100-8 all_gather CODE 2 ERROR_MATCHES "^stepsim: unexpected \"all_gather\"; usage: ")
cli("no collective" ARGS collective --cluster h100-8 CODE 2
  ERROR "which collective? expected all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, send_recv, h2d or d2h")
cli("no cluster" ARGS collective all_reduce CODE 2 ERROR "--cluster is missing; `stepsim list clusters` names them")
cli("misspelt collective" ARGS collective allreduce --cluster h100-8 CODE 2
  ERROR "no collective \"allreduce\" (did you mean \"all_reduce\"?); expected all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, send_recv, h2d or d2h")
cli("misspelt algorithm" ARGS ${small} h100-8 --algorithm rings CODE 2
  ERROR "no algorithm \"rings\" (did you mean \"ring\"?); expected ring, direct, tree, hierarchical, nvls or nvls_tree")
cli("algorithm that the machine cannot do" ARGS ${small} mi300x-8 --algorithm nvls CODE 2
  ERROR "algorithm nvls cannot do all_reduce for 8 ranks on 1 node of mi300x-8")
cli("misspelt protocol" ARGS ${small} h100-8 --protocol simpel CODE 2
  ERROR "--protocol: expected ll, ll128 or simple, found \"simpel\" (did you mean \"simple\"?)")
cli("misspelt detail" ARGS ${small} h100-8 --detail step CODE 2
  ERROR "--detail: expected fluid or stepped, found \"step\"")
cli("misspelt folding" ARGS ${small} h100-8 --fold of CODE 2
  ERROR "--fold: expected auto or off, found \"of\" (did you mean \"off\"?)")
cli("misspelt list" ARGS list node CODE 2
  ERROR "no list \"node\" (did you mean \"nodes\"?); expected gpus, nodes, networks, processors, clusters, prices, models, stacks, optimizers, precisions, formats, adapters, recipes, releases, engines, scenarios, algorithms, architectures or keys")
cli("show nothing" ARGS show CODE 2 ERROR "which entry? usage: stepsim show NAME")
cli("show what is not there" ARGS show mi300 CODE 2
  ERROR "nothing called \"mi300\" in the catalogue (did you mean \"mi300x\"?); `stepsim list` names all")
cli("another name of a model" ARGS show gpt2 CODE 0 OUTPUT "GPT-2 small")

# ---- sizes ----
set(sized collective all_reduce --cluster h100-8 --sizes)
set(units "units: TB, GB, MB, kB, B, TiB, GiB, MiB, KiB")
cli("size without a unit" ARGS ${sized} 1024 CODE 2
  ERROR "--sizes: the unit is missing: expected a size such as \"64KiB\", found \"1024\"")
cli("size of nothing" ARGS ${sized} 0B CODE 2 ERROR "--sizes: expected a size such as \"64KiB\", found \"0B\"; ${units}")
cli("negative size" ARGS ${sized} -1MiB CODE 2
  ERROR "--sizes: expected a size such as \"64KiB\", found \"-1MiB\"; ${units}")
cli("size with a wrong unit" ARGS ${sized} 1MBit CODE 2
  ERROR "--sizes: expected a size such as \"64KiB\", found \"1MBit\"; ${units}")
cli("size that is a time" ARGS ${sized} 1ms CODE 2
  ERROR "--sizes: expected a size such as \"64KiB\", found \"1ms\"; ${units}")
cli("endless size" ARGS ${sized} 1e400B CODE 2
  ERROR "--sizes: expected a size such as \"64KiB\", found \"1e400B\"; ${units}")
cli("empty size in a list" ARGS ${sized} 1MiB,,2MiB CODE 2
  ERROR "--sizes: expected a size such as \"64KiB\", found \"\"; ${units}")
cli("sizes backwards" ARGS ${sized} 1GiB:1MiB CODE 2
  ERROR "--sizes: \"1GiB:1MiB\" runs backwards; write 1MiB:1GiB")
cli("three ends of sizes" ARGS ${sized} 1KiB:1MiB:1GiB CODE 2
  ERROR "--sizes: expected FROM:TO such as 64KiB:16GiB, found \"1KiB:1MiB:1GiB\"")

# ---- ranks, nodes, names ----
cli("misspelt cluster" ARGS ${small} h1008 CODE 2
  ERROR "no cluster or node \"h1008\" (did you mean \"h100-8\"?); `stepsim list nodes` and `stepsim list clusters` name them")
cli("misspelt network" ARGS ${small} h100-8 --nodes 2 --network ndr-rails CODE 2
  ERROR "no network \"ndr-rails\" (did you mean \"ndr-rail\"?)")
cli("no ranks" ARGS ${small} h100-8 --ranks= CODE 2 ERROR "--ranks: expected a value")
cli("rank outside the cluster" ARGS ${small} h100-8 --ranks 0,8 CODE 2
  ERROR "ranks: no rank 8; h100-8 has ranks 0 to 7")
cli("repeated rank" ARGS ${small} h100-8 --ranks 0,1,0 CODE 2 ERROR "ranks: rank 0 is listed twice")
cli("ranks backwards" ARGS ${small} h100-8 --ranks 7-0 CODE 2 ERROR "--ranks: \"7-0\" runs backwards; write 0-7")
cli("half a range of ranks" ARGS ${small} h100-8 --ranks 0- CODE 2
  ERROR "--ranks: expected ranks such as 0,1 or 0-7, found \"0-\"")
cli("rank that is no number" ARGS ${small} h100-8 --ranks gpu0 CODE 2
  ERROR "--ranks: expected a whole number, found \"gpu0\"")
cli("rank beyond all numbers" ARGS ${small} h100-8 --ranks 99999999999999999999 CODE 2
  ERROR "--ranks: expected 0 to 1048576, found 99999999999999999999")
cli("copy of a rank outside the cluster" ARGS collective h2d --cluster h100-8 --ranks 8 --sizes 1MiB CODE 2
  ERROR "ranks: no rank 8; h100-8 has ranks 0 to 7")
cli("no nodes" ARGS ${small} h100-8 --nodes 0 CODE 2 ERROR "--nodes: expected 1 to 8192, found 0")
cli("nodes that are no number" ARGS ${small} h100-8 --nodes two CODE 2
  ERROR "--nodes: expected a whole number, found \"two\"")
cli("more nodes than anybody has" ARGS ${small} h100-8 --nodes 4294967295 CODE 2
  ERROR "--nodes: expected 1 to 8192, found 4294967295")
cli("more nodes than the cluster has" ARGS ${small} alps --nodes 8000 CODE 2
  ERROR "nodes: alps has 2688 nodes, not 8000")

# ---- mistakes in data files ----
set(node topology/nodes/mi300x-8.yaml)
cli("a name that is not the file's" ARGS ${small} mi300x-8 CODE 2
  EDIT ${node} "name: mi300x-8" "name: h100-8"
  ERROR "@DATA@/${node}:@LINE@: name: expected \"mi300x-8\", as the file is called, found \"h100-8\"")
cli("misspelt key in a node file" ARGS ${small} mi300x-8 CODE 2 EDIT ${node} "network:" "netwrok:"
  ERROR "@DATA@/${node}:@LINE@: netwrok: unknown key (did you mean \"network\"?)")
cli("missing unit in a node file" ARGS ${small} mi300x-8 CODE 2 EDIT ${node} "value: 46 GB/s" "value: 46"
  ERROR "@DATA@/${node}:@LINE@: links[0].bandwidth.value: the unit is missing: expected a bandwidth such as \"25 GB/s\", found \"46\"")
cli("unit of the wrong kind in a node file" ARGS ${small} mi300x-8 CODE 2 EDIT ${node} "value: 46 GB/s" "value: 46 us"
  ERROR "@DATA@/${node}:@LINE@: links[0].bandwidth.value: expected a bandwidth such as \"25 GB/s\", found a time (\"46 us\")")
cli("unknown unit in a node file" ARGS ${small} mi300x-8 CODE 2 EDIT ${node} "value: 46 GB/s" "value: 46 Gbit/s"
  ERROR "@DATA@/${node}:@LINE@: links[0].bandwidth.value: expected a bandwidth such as \"25 GB/s\", found \"46 Gbit/s\"; units: TB/s, GB/s, MB/s, kB/s, B/s, GiB/s")
cli("negative bandwidth in a node file" ARGS ${small} mi300x-8 CODE 2 EDIT ${node} "value: 46 GB/s" "value: -46 GB/s"
  ERROR "@DATA@/${node}:@LINE@: links[0].bandwidth.value: a bandwidth must be above zero, found \"-46 GB/s\"")
cli("value outside its own range" ARGS ${small} mi300x-8 CODE 2 EDIT ${node} "value: 46 GB/s" "value: 460 GB/s"
  ERROR_MATCHES "mi300x-8\\.yaml:[0-9]+: links\\[0\\]\\.bandwidth: expected low <= value <= high\n$")
cli("no source in a node file" ARGS ${small} mi300x-8 CODE 2 EDIT ${node} "source: >-" "sauce: >-"
  ERROR_MATCHES "bandwidth\\.source: is missing\n.*:@LINE@: links\\[0\\]\\.bandwidth\\.sauce: unknown key \\(did you mean \"source\"\\?\\)\n$")
cli("unknown grade in a node file" ARGS ${small} mi300x-8 CODE 2 EDIT ${node} "grade: measured" "grade: measurd"
  ERROR "@DATA@/${node}:@LINE@: links[0].bandwidth.grade: expected measured, fitted, derived, vendor, datasheet or guess, found \"measurd\" (did you mean \"measured\"?)")
cli("unknown part in a node file" ARGS ${small} mi300x-8 CODE 2
  EDIT ${node} "between: [pcie_switch, nic]" "between: [pcie_swich, nic]"
  ERROR "@DATA@/${node}:@LINE@: links[2].between: no part \"pcie_swich\" (did you mean \"pcie_switch\"?); expected gpu, nvswitch, pcie_switch, nic, socket, dram or nvme")
cli("node without GPUs" ARGS ${small} mi300x-8 CODE 2 EDIT ${node} "{gpu: 8," "{gpu: 0,"
  ERROR "@DATA@/${node}:@LINE@: parts.gpu: expected a number from 1 to 1024, found 0")
cli("GPU that is in no file" ARGS ${small} mi300x-8 CODE 2 EDIT ${node} "gpu: mi300x" "gpu: mi300z"
  ERROR "no GPU \"mi300z\" (did you mean \"mi300x\"?)")
cli("node that is in no file" ARGS ${small} alps CODE 2
  EDIT topology/clusters/alps.yaml "node: gh200-4" "node: gh200-44" ERROR "no node \"gh200-44\" (did you mean \"gh200-4\"?)")
cli("no route between two members" ARGS ${small} h100-pcie-2 CODE 2
  EDIT topology/nodes/h100-pcie-2.yaml "between: [socket, gpu]" "between: [socket, nic]"
  ERROR "no route from rank 0 (gpu 0) to rank 1 (gpu 1) on h100-pcie-2")
cli("no route to the switch" ARGS ${small} h100-8 CODE 2
  EDIT topology/nodes/h100-8.yaml "between: [gpu, nvswitch]" "between: [nic, nvswitch]"
  ERROR "no route between rank 0 (gpu 0) and the switch of its node on h100-8")
cli("no route to host memory" ARGS collective h2d --cluster h100-pcie-2 --sizes 1MiB CODE 2
  EDIT topology/nodes/h100-pcie-2.yaml "between: [dram, socket]" "between: [nvme, socket]"
  ERROR "no route between gpu 0 and host memory on h100-pcie-2")
cli("node file cut off" ARGS ${small} mi300x-8 CODE 2 CUT ${node} 1500
  ERROR_MATCHES "mi300x-8\\.yaml:[0-9]+: host: is missing\n.*mi300x-8\\.yaml:[0-9]+: collectives: is missing\n")
cli("empty node file" ARGS ${small} mi300x-8 CODE 2 CUT ${node} 0
  ERROR "@DATA@/${node}: expected a mapping of keys to values")
cli("node file that cannot be read" ARGS ${small} mi300x-8 CODE 2 EDIT ${node} "gpu: mi300x" "gpu: mi300x"
  SHELL "rm @DATA@/${node} && mkdir @DATA@/${node} && \"$@\"" ERROR "@DATA@/${node}: cannot be read: it is a folder")
cli("node file that is binary" ARGS ${small} mi300x-8 CODE 2 EDIT ${node} "gpu: mi300x" "gpu: mi300x"
  SHELL "printf '\\001\\002\\377\\n\\000' >@DATA@/${node} && \"$@\"" ERROR_MATCHES "^stepsim: @DATA@/${node}:[0-9: ]*[a-z]")
# ---- measured tables ----
set(table scenarios/measured/collectives.csv)
set(notes scenarios/measured/collectives-notes.csv)
set(compare collective all_reduce --cluster mi300x-8 --compare)
cli("compare one machine" ARGS ${compare} @ROOT@/${table}
  OUTPUT "all_reduce on mi300x-8\n.*stas-mi300x-8 .*AMD-AGI/Primus.*from 16 MiB: +[0-9]+ rows")
cli("compare as JSON" ARGS ${compare} @ROOT@/${table} --json
  KEYS rows/0/id rows/0/measured_s rows/0/predicted_s rows/0/error rows/0/note sources/0/source sources/0/machine
       sources/0/worst all/below_16MiB/rows all/from_16MiB/median_abs_error all/from_16MiB/p90_abs_error)
cli("compare a machine of which nothing is known" ARGS collective --cluster gh200-1 --compare @ROOT@/${table} CODE 2
  ERROR "@ROOT@/${table}: no row is about this machine and operation")
cli("compare with options that the rows answer" ARGS ${compare} @ROOT@/${table} --sizes 1MiB CODE 2
  ERROR "--sizes does not go with --compare: the rows say what was measured, and how")
cli("no measured table" ARGS ${compare} @WORK@/none.csv CODE 2
  ERROR "@WORK@/none.csv: cannot be read: No such file or directory")
cli("folder as measured table" ARGS ${compare} @WORK@ CODE 2 ERROR "@WORK@: cannot be read: it is a folder")
cli("measured table cut off" ARGS ${compare} @DATA@/${table} CODE 2 CUT ${table} 1000
  ERROR_MATCHES "collectives\\.csv:[0-9]+: (expected 19 cells, found [0-9]+|a quoted cell is never closed)\n$")
cli("empty measured table" ARGS ${compare} @DATA@/${table} CODE 2 CUT ${table} 0
  ERROR "@DATA@/${table}:1: collective: the column is missing\n@DATA@/${table}:1: hardware: the column is missing")
cli("word where a number belongs" ARGS ${compare} @DATA@/${table} CODE 2 EDIT ${table} ",32768," ",32 KiB,"
  ERROR "@DATA@/${table}:@LINE@: size_bytes: expected a number, found \"32 KiB\"")
cli("misspelt column" ARGS ${compare} @DATA@/${table} CODE 2 EDIT ${table} ",hardware," ",hardwear,"
  ERROR "@DATA@/${table}:1: hardware: the column is missing (did you mean \"hardwear\"?)")
cli("note on a row that is not there" ARGS ${compare} @DATA@/${table} CODE 2 EDIT ${notes} "isambard-2n-ar" "isambard-2n-arr"
  ERROR "@DATA@/${notes}:@LINE@: id: no measured row \"isambard-2n-arr\" (did you mean \"isambard-2n-ar\"?)")
cli("note that says neither yes nor no" ARGS ${compare} @DATA@/${table} CODE 2
  EDIT ${notes} "isambard-2n-ar,no" "isambard-2n-ar,maybe"
  ERROR "@DATA@/${notes}:@LINE@: left_out: expected yes or no, found \"maybe\"")

# ---- answers ----
cli("bandwidth table" ARGS ${small} mi300x-8
  OUTPUT "^all_reduce of 8 ranks on 1 x mi300x-8 .*\n\n +size +time .*\n1 MiB +[0-9.]+ us .* direct +ll +xgmi\\.gpu0>gpu1\n\nplayed by SimGrid [34]\\.[0-9]+; the engine of our own finds the same[^\n]*\n$")
cli("bandwidth as JSON" ARGS ${small} mi300x-8 --json
  KEYS operation node nodes network ranks rows/0/bytes rows/0/time_s rows/0/algbw_GBps rows/0/busbw_GBps
       rows/0/algorithm rows/0/protocol rows/0/busiest_link)
cli("bandwidth across nodes" ARGS ${small} superpod-h100 --nodes 2 OUTPUT "16 ranks on 2 x h100-8 .* over ndr-rail")
cli("a rank alone" ARGS ${small} h100-8 --ranks 3 OUTPUT "^all_reduce of 1 rank on .* none +none")
cli("copies to the GPU" ARGS collective h2d --cluster h100-8 --sizes 1GiB OUTPUT "^h2d by 8 ranks at once .* copy +dma")
cli("send_recv names both ends" ARGS collective send_recv --cluster h100-8 --ranks 2,5 --sizes 1MiB
  OUTPUT "^send_recv from rank 2 to rank 5 on ")
cli("every step of a ring" ARGS ${small} h100-8 --algorithm ring --detail stepped --fold off OUTPUT " ring ")
cli("list" ARGS list OUTPUT "gpus\n.*nodes\n.*networks\n.*clusters\n.*models\n.*algorithms\n.*architectures\n")
cli("list as JSON" ARGS list --json
  KEYS gpus/0/name gpus/0/title nodes/0/name networks/0/name clusters/0/name algorithms/0/name algorithms/0/title)
cli("one list as JSON" ARGS list algorithms --json KEYS algorithms/0/name)
foreach(entry mi300x gh200-4 slingshot-11 alps)
  cli("show ${entry}" ARGS show ${entry} OUTPUT "^${entry} \\([A-Za-z]+\\): ")
  cli("show ${entry} as JSON" ARGS show ${entry} --json KEYS name kind title facts constants)
endforeach()
cli("list models" ARGS list models OUTPUT "^models\n.*  qwen3-30b-a3b +Qwen3 30B-A3B\n")
cli("list architectures as JSON" ARGS list architectures --json KEYS architectures/0/name architectures/0/title)
cli("show a model" ARGS show qwen3-30b-a3b OUTPUT "\nall +30,532,122,624 +61\\.064 +56\\.871\n.*18,867 parameter tensors")
cli("show a model as JSON" ARGS show qwen3-30b-a3b --json
  KEYS name kind dimensions/hidden dimensions/experts/count parameters/all parameters/active_per_token tensors bf16_gib)
cli("show a config that is not there" ARGS show none/config.json CODE 2
  ERROR "none/config.json: cannot be read: No such file or directory")
cli("show names links and protocols" ARGS show gh200-4 OUTPUT "links\\.nvlink\\.bandwidth .*collectives\\.protocols\\.simple\\.efficiency ")
cli("other data" ARGS show mi300x-8 EDIT ${node} "8x MI300X" "eight of them" OUTPUT "^mi300x-8 \\(node\\): eight of them")

# ---- traces ----
cli("equal runs give equal bytes" ARGS ${small} mi300x-8
  SHELL "\"$@\" -o out/a.h5 >a.txt && \"$@\" --output out/b.h5 >b.txt && cmp out/a.h5 out/b.h5 && cmp a.txt b.txt && ls out"
  OUTPUT "^a.h5\nb.h5\n$")
cli("a trace replaces the old one" ARGS ${small} mi300x-8 -o out/a.h5 SHELL "echo old >out/a.h5; \"$@\" && head -c 4 out/a.h5"
  OUTPUT "HDF")
cli("trace below a file" ARGS ${small} mi300x-8 -o @WORK@/file/a.h5 CODE 2 SHELL "touch file; \"$@\""
  ERROR "@WORK@/file/a.h5: cannot be written: Not a directory")
cli("trace in a folder that is read-only" ARGS ${small} mi300x-8 -o /proc/a.h5 CODE 2
  ERROR_MATCHES "^stepsim: /proc/a\\.h5: cannot be written: ")
cli("trace in a folder that is not there" ARGS ${small} mi300x-8 -o @WORK@/none/a.h5 CODE 2
  ERROR "@WORK@/none/a.h5: cannot be written: there is no folder \"@WORK@/none\"")
cli("trace in place of a folder" ARGS ${small} mi300x-8 -o @WORK@/out CODE 2
  ERROR "@WORK@/out: cannot be written: it is a folder")
cli("trace into a device" ARGS ${small} mi300x-8 -o /dev/null CODE 2
  ERROR "/dev/null: cannot be written: it is no regular file")
cli("a mistake writes no trace" ARGS ${small} mi300x-8 --ranks 0,9 -o out/a.h5 CODE 2
  ERROR "ranks: no rank 9; mi300x-8 has ranks 0 to 7")
# The mount is gone with the namespace.
cli("trace on a full disk" ARGS ${small} mi300x-8 -o @WORK@/out/a.h5 CODE 2
  SHELL "unshare -m true 2>/dev/null || { echo 'skipped: no namespace for a small disk'; exit 2; }
    exec unshare -m bash -c 'mount -t tmpfs -o size=8k none out 2>/dev/null || { echo \"skipped: no mount\"; exit 2; }
      \"$@\"; code=$?; ls -A out >&2; exit $code' bash \"$@\""
  ERROR "@WORK@/out/a.h5: cannot be written: No space left on device")

# ---- standard output that is gone ----
cli("output to a full device" ARGS show h100-8 CODE 2 SHELL "\"$@\" >/dev/full"
  ERROR "the output could not be written: No space left on device")
cli("a little output to a full device" ARGS --version CODE 2 SHELL "\"$@\" >/dev/full"
  ERROR "the output could not be written: No space left on device")
cli("output that is closed" ARGS show h100-8 CODE 2 SHELL "\"$@\" >&-"
  ERROR "the output could not be written: Bad file descriptor")

# ---- installed, and started by the script ----
# All that commands read is there, and nothing else.
cli("the data is installed, whole"
  SHELL "cmake --install @BUILD@ --prefix @WORK@/prefix >install.log || exit 9
    data() { find topology workloads scenarios claims -type f \\( -name '*.yaml' -o -name '*.csv' -o -name '*.json' \\); }
    (cd @ROOT@ && data | sort) >source.txt; (cd @WORK@/prefix/share/stepsim && rm -r slurm docs && find -type f -printf '%P\\n' | sort) >installed.txt
    (cd @WORK@/prefix && find -type d -empty) >>installed.txt
    diff source.txt installed.txt && echo same" OUTPUT "^same\n$")
cli("every command works where it is installed" SLOW
  SHELL "cmake --install @BUILD@ --prefix @WORK@/prefix >install.log || exit 9
    bash @ROOT@/tests/cli/installed.sh @WORK@/prefix @ROOT@" OUTPUT "all [0-9]+ commands answer\n$")
cli("every command works out of the Debian package" SLOW
  SHELL "command -v dpkg-shlibdeps >/dev/null || { echo 'skipped: no dpkg-shlibdeps here'; exit; }
    cpack --config @BUILD@/CPackConfig.cmake -B @WORK@/pack >pack.log 2>&1 || { cat pack.log; exit 9; }
    dpkg-deb -x pack/stepsim_*.deb unpacked && dpkg-deb -f pack/stepsim_*.deb Depends | grep -q libyaml || exit 9
    cd unpacked/usr && ls share/man/man1/stepsim-run.1.gz share/bash-completion/completions/stepsim share/zsh/vendor-completions/_stepsim share/doc/stepsim/copyright
    bash @ROOT@/tests/cli/installed.sh \"$PWD\" @ROOT@"
  OUTPUT "stepsim-run.1.gz\n.*all [0-9]+ commands answer\n$")
# What ./stepsim adds: one search for sources newer than the build.
cli("the script adds less than 50 ms"
  SHELL "root=@ROOT@; . \"$root/cmake/ensure.sh\"; if stale || [ ! \"$root/build\" = @BUILD@ ]; then echo 'skipped: no fresh build'; exit; fi
    now() { date +%s%N; }; best=999999999
    for i in 1 2 3 4 5 6 7; do a=$(now); \"$root/stepsim\" --version >/dev/null; b=$(now); \"$root/build/stepsim\" --version >/dev/null; c=$(now)
      over=$(( 2 * b - a - c )); (( over < best )) && best=$over; done
    echo \"the script adds $(( best / 1000 )) us\"; (( best < 50000000 ))" OUTPUT "the script adds -?[0-9]+ us")
