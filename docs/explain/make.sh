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
single xGMI link, and that row is the largest against the gap. What ZeRO-3 gathers hides behind the host. To close the gap, \
set sub_group_size to DeepSpeed's own value; faster links would help the other side." \
  qwen3-30b-sft-zero3 qwen3-30b-sft-zero2moe

page qwen3-dpo "Qwen3-30B DPO: run 165 (ZeRO-3) against run 096 (ZeRO-2 with Tutel)" \
"Here the ZeRO-3 side is predicted to be the faster one, and the page says why: MegaBlocks is modelled as a grouped kernel \
over fused expert tensors, so there are few tensors to hook, to launch and to walk over, while the ZeRO-2 side pays for its \
all-to-all. The measured runs went the other way. Rows that the prediction lacks are the finding: a slow ZeRO-3 run needs \
host time per expert, and with fused tensors there is none. The run must have kept its experts apart, whatever its kernels \
were; qwen3-30b-dpo-zero3 with strategy.moe.kernel=loop shows that." \
  qwen3-30b-dpo-zero3 qwen3-30b-dpo-zero2moe

page mpt7b-offload "MPT-7B on two H100: everything on the host against nothing" \
"Both sides gather and hook alike, so those rows are small. What the offload adds is copies over the host link, gradients \
down and parameters up in every micro-batch, and the update on host cores, during which both GPUs stand still. The path of A \
shows that most of each micro-batch waits for the host either way: with one sequence of 512 tokens the GPU has little to do, \
so the copies are hidden in part, and the factor between the two is smaller than the one that the author of the run expected. \
It grows with the micro-batch of the side that keeps its states on the device." \
  mpt7b-zero3-offload --set strategy.offload.optimizer=none --set strategy.offload.parameters=none
