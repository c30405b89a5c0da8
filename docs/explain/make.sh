#!/usr/bin/env bash
# Writes the three pages beside this file anew: docs/explain/make.sh [path of stepsim]
set -eu
here=$(dirname "$(readlink -f "$0")")
stepsim=${1:-$here/../../build/stepsim}

# page NAME TITLE READING ARGUMENTS...: a page that begins with how to read it.
page() {
  local name=$1 title=$2 reading=$3
  shift 3
  {
    printf '# %s\n\n' "$title"
    printf '%s\n' "$reading" | fold -s -w 120 | sed 's/ *$//'
    printf '\n```\n$ stepsim explain %s\n\n' "$*"
    "$stepsim" explain "$@"
    printf '```\n'
  } > "$here/$name.md.new"
  mv "$here/$name.md.new" "$here/$name.md"
}

page qwen3-sft "Qwen3-30B SFT: ZeRO-3 against ZeRO-2 with Tutel" \
"The gap is not made of bandwidth. Its largest row is the optimizer: with a sub-group for every tensor, the host walks over \
all 18,867 tensors once for each of them. Launches and module hooks of experts that run one after the other come next; they \
are host time, too. Communication works the other way round: the ZeRO-2 run exchanges tokens between pairs of GPUs over a \
single xGMI link, and that row is the largest against the gap. What ZeRO-3 gathers hides behind the host. How large the gap is \
rests on how long one visit of such a list takes and on how fast the host is, and both are known badly; that it is there, and \
which row is the largest, every draw of the constants says. To close the gap, set sub_group_size to DeepSpeed's own value; \
faster links would help the other side." \
  qwen3-30b-sft-zero3 qwen3-30b-sft-zero2moe

page qwen3-dpo "Qwen3-30B DPO: run 165 (ZeRO-3) against run 096 (ZeRO-2 with Tutel)" \
"Here the ZeRO-3 side is predicted to be the faster one, and the page says why: MegaBlocks is modelled as a grouped kernel \
over fused expert tensors, so there are few tensors to hook, to launch and to walk over, while the ZeRO-2 side pays for its \
all-to-all. The measured runs went the other way, 46 h against 24 h, and draws do so only where experts may have stayed apart, which the source does not say. What makes a ZeRO-3 run \
slow is host time per expert, and with fused tensors there is none. With experts that stay apart (strategy.moe.kernel=loop) the \
ZeRO-3 side is predicted to take 99 s a step and 24 h in all: four times as long as the other side (5.7 h predicted, 24 h measured), \
and about half of what its author extrapolated. So the run kept something apart that this scenario says was fused; which part, a page cannot tell." \
  qwen3-30b-dpo-zero3 qwen3-30b-dpo-zero2moe

page mpt7b-offload "MPT-7B on two H100: everything on the host against nothing" \
"Sixteen micro-batches of one row of 512 tokens leave the GPU little to do. Without offload the step waits for the host thread in \
ZeRO-3's hooks. With it gradients of a bucket have to be on the host before the next bucket is reduced, and in the lower layers of \
the backward pass these copies take over from the hooks: each hides much of the other, which is why the factor is only 1.4 and \
not the two to three that the author of the run expected. With free copies 65 % of the gap close, with a free update on the host \
cores behind the last micro-batch 35 %. The two large rows belong together: on A copies and hooks hide each other, so that \
freeing either alone saves less than its row, and each has a part of what both save; on B the hooks are alone and have all of it. \
Fewer micro-batches of more rows would bring both down." \
  mpt7b-zero3-offload --set strategy.offload.optimizer=none --set strategy.offload.parameters=none
