#!/usr/bin/env bash
# installed.sh PREFIX ROOT: every command of an installed stepsim answers from its own data.
# The prefix is copied elsewhere and, where this system lets us, the source and build trees are hidden meanwhile, so that
# nothing can be read from there by mistake. The list of commands is the program's own: a new one needs a line below.
set -euo pipefail
prefix=$1 root=$2
if [[ ! -v STEPSIM_PLACE ]]; then
  place=$(mktemp -d)
  trap 'rm -rf "$place"' EXIT
  cp -r "$prefix" "$place/prefix"
  cp "$root"/tests/cli/tiny.yaml "$place"
  export STEPSIM_PLACE=$place XDG_CONFIG_HOME=$place/no-config
  cd "$place"
  if unshare -m true 2>/dev/null; then
    unshare -m bash -c 'mount -t tmpfs none "$2" 2>/dev/null || echo "the sources are in reach: no mounts here"
      exec bash /dev/fd/3 "$1" "$2"' bash "$place/prefix" "$root" 3<"${BASH_SOURCE[0]}"
  else
    bash "${BASH_SOURCE[0]}" "$place/prefix" "$root"
  fi
  exit
fi

cd "$STEPSIM_PLACE"
stepsim=$prefix/bin/stepsim
tables=$prefix/share/stepsim/scenarios/measured
cat >claims.yaml <<'end'
claims:
  - id: it-takes-time
    text: A step takes time.
    scenarios: {run: tiny.yaml}
    holds: [{value: run.step_time, at_least: 1 ns}]
end
printf "base_model: x/y\nsequence_len: 1024\nmicro_batch_size: 1\n" >axolotl.yaml
head -n 5 "$tables"/steps/dense_a100.csv >rows.csv

declare -A said
# try COMMAND WORDS...: it answers, and complains of nothing.
try() {
  "$stepsim" "$@" >answer 2>complaint || { echo "failed ($?): stepsim $*"; cat answer complaint; exit 1; }
  [[ -s answer && ! -s complaint ]] || { echo "no clean answer: stepsim $*"; cat answer complaint; exit 1; }
  said[$1]=yes
}
"$stepsim" --help | grep -qF "installed catalogue: $prefix/share/stepsim" || { echo "the data is not beside the binary"; exit 1; }
try run llama32-3b-sft-zero3 --faster 0
try run tiny.yaml -o run.h5
try memory qwen3-30b-sft-zero3
try diff tiny.yaml llama32-3b-sft-zero3
try explain tiny.yaml --set strategy.zero=2
try check claims.yaml
echo "12/100 [01:40<12:13, 8.33s/it]" >train.log
try anchor tiny.yaml --log train.log --samples 8
"$stepsim" diagnose tiny.yaml --log train.log --samples 8 >answer 2>complaint || (($? == 1)) || { echo "failed: stepsim diagnose"; cat answer complaint; exit 1; }
said[diagnose]=yes
try sweep tiny.yaml --vary job.micro_batch=1,2 --shard 1/2 -o part
try sweep tiny.yaml --vary job.micro_batch=1,2 --shard 2/2 -o part
try merge part.shard-1-of-2.h5 part.shard-2-of-2.h5 -o whole
try validate tiny.yaml
STEPSIM=$stepsim "$prefix"/bin/stepsim-rows rows.csv >answer 2>complaint || { echo "failed: stepsim-rows"; cat answer complaint; exit 1; }
try kernels
try report run.h5 -o page.html
try export run.h5 --perfetto trace.json
try mcp <<<'{"jsonrpc": "2.0", "id": 1, "method": "resources/list"}'
grep -q 'stepsim://docs/step/sharding.md' answer || { echo "the pages are not beside the binary"; exit 1; }
try export run.h5 --memory-viz memory.pickle
try memory run.h5 --beside memory.pickle
try collective all_reduce --cluster mi300x-8 --sizes 1GiB
try collective --cluster mi300x-8 --compare "$tables"/collectives.csv
try export llama32-3b-sft-zero3 --as torchtitan -o own.toml
try import axolotl.yaml --model llama-3.2-1b --cluster mi300x-8 --keys
try plan llama-3.2-1b --cluster h100-8 --global-batch 16 --samples 0
try list
try show mi300x-8

# A server answers until it is ended.
rm answer complaint
"$stepsim" serve --port 0 >answer 2>complaint &
until [[ -s answer || -s complaint ]]; do sleep 0.05; done
link=$(head -n 1 answer)
place=${link#http://}
exec 4<>"/dev/tcp/127.0.0.1/$(sed 's/.*:\([0-9]*\)\/.*/\1/' <<<"$link")"
printf 'GET /%s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n' "${place#*/}" >&4
grep -qF "HTTP/1.1 200 OK" <&4 || { echo "no answer: stepsim serve"; cat answer complaint; exit 1; }
exec 4>&-
kill -INT $!
wait $! && [[ ! -s complaint ]] || { echo "no clean end: stepsim serve"; cat answer complaint; exit 1; }
said[serve]=yes

for command in $("$stepsim" --help | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
  [[ ${said[$command]:-} == yes ]] || { echo "no case runs stepsim $command"; exit 1; }
done
echo "all ${#said[@]} commands answer"
