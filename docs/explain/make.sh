#!/usr/bin/env bash
# Writes the pages beside this file anew: docs/explain/make.sh [path of stepsim]
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

page qwen3-sft "Qwen3-30B SFT on 8x MI300X: ZeRO-3 (run 094) against ZeRO-2 with the optimizer on the host (run 095)" \
"Why does ZeRO-3 take 38 h where ZeRO-2 takes 15? Because its file leaves sub_group_size at 0: the optimizer then has a sub-group for \
each of the 18,867 tensors, and for each of them DeepSpeed walks over all 18,867 to clear their gradients. That is 78 s a step, all of the \
gap and more; set sub_group_size to 1e9 and nothing else, and 22 s remain. Module hooks and launches of experts that run one after the other come next, \
6 s. ZeRO-2 pays 9 s for an update on the host by one thread. Measured: 115 s a step against 45 s, 70 s apart; predicted: 102 s against 30 s, 72 s apart." \
  qwen3-30b-sft-zero3 qwen3-30b-sft-zero2-offload

page qwen3-dpo "Qwen3-30B DPO on 8x MI300X: ZeRO-3 (run 165) against ZeRO-2 with the optimizer on the host (run 096)" \
"The same setting, sub_group_size: 0, and the same 18,867 tensors: the kernels of MegaBlocks run over experts that the model's code keeps apart, \
so there is as much to walk over as in SFT. Measured: 76 s a step of 64 pairs of at most 2048 tokens in run 165, over its whole length; 110 s for the first five \
steps of run 096 in its first form, 64 pairs of at most 4096 tokens. First steps are slower than later ones, and by how much is not published." \
  qwen3-30b-dpo-zero3 qwen3-30b-dpo-zero2-offload

page mpt7b-offload "MPT-7B on two H100: everything on the host against nothing" \
"Both sides are ZeRO-3 with 16 micro-batches of one row of 256 tokens. Without offload the step waits for the host thread in ZeRO-3's hooks. With it \
the update runs on one core, as the launcher leaves each process one thread; the host stands still while parameters are copied up, so that hooks and copies add up; \
and gradients go down and up again for each micro-batch. Fewer micro-batches of more rows would bring copies and hooks down, OMP_NUM_THREADS the update." \
  mpt7b-zero3-offload --set strategy.offload.optimizer=none --set strategy.offload.parameters=none

page mpt7b-epoch "MPT-7B on two H100: why an epoch takes 13 h with offload and 3.4 h with ZeRO-2" \
"Measured: 17.3 s for a step of 32 rows, so 13.2 h an epoch, against 1.11 s for a step of 8 rows and 3 h 23 min with 21 checkpoints. Predicted: \
20.8 s and 753 ms, 15.9 h and 2.4 h. Of the 20 s the largest part is the update on one core of the host, then copies of parameters and gradients over PCIe for each of the \
16 micro-batches, then ZeRO-3's hooks, which the copies no longer hide. On the ZeRO-2 side a third of the step is none of these: memory is nearly full, and in each step the allocator \
gives idle memory back and maps it anew (in the row of other); how fast a driver does that is known of smaller pieces on another machine." \
  mpt7b-zero3-offload mpt7b-zero2
