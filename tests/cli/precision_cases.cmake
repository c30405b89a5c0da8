# Precision of products: what a scenario may say, and what a GPU has units for. How a case is written stands at the top of cases.cmake.
if(NOT COMMAND cli)
  return()
endif()

function(precision_refused name node precision more error)
  cli("${name}" ARGS run @WORK@/own.yaml CODE 2
    SHELL "sed 's|mi300x-8|${node}|; s|{zero: 3}|{zero: 1, precision: ${precision}${more}}|; s|deepspeed-hf-rocm|megatron|; s|^measured.*||' @ROOT@/tests/cli/tiny.yaml >@WORK@/own.yaml; \"$@\""
    ERROR "@WORK@/own.yaml:13: strategy.${error}")
endfunction()

precision_refused("a precision that there is not" h100-8 fp8-curent ""
  "precision: no precision \"fp8-curent\" (did you mean \"fp8-current\"?)")
precision_refused("8 bits on a GPU without units for them" a100-8 fp8-current ""
  "precision: a100-sxm-80 has no units for products of fp8-current; these have: b200, b300, gb10, gb200, gb300, gh200-96, h100-nvl, h100-pcie, h100-sxm, h100-sxm-96, h20, h20-141, h200, h200-nvl, l4, l40s, mi300x, mi308x, mi325x, mi355x, rtx-4080, rtx-4090, rtx-5080, rtx-5090, rtx-6000-ada, rtx-pro-6000")
precision_refused("exponents of blocks on a GPU that came before them" h100-8 mxfp8 ""
  "precision: h100-sxm has no units for products of mxfp8; these have: b200, b300, gb10, gb200, gb300, mi355x, rtx-5080, rtx-5090, rtx-pro-6000")
precision_refused("NVIDIA's 4 bits on a GPU of AMD" mi355x-8 nvfp4 ""
  "precision: mi355x has no units for products of nvfp4; these have: b200, b300, gb10, gb200, gb300, rtx-5080, rtx-5090, rtx-pro-6000")
cli("8 bits that recomputation forgets" ARGS run --full @WORK@/own.yaml --samples 0 --faster 0
  SHELL "sed 's|mi300x-8|h100-8|; s|{zero: 3}|{zero: fsdp, precision: fp8-delayed, checkpointing: full}|; s|deepspeed-hf-rocm|fsdp2-eager|; s|^measured.*||' @ROOT@/tests/cli/tiny.yaml >@WORK@/own.yaml; \"$@\""
  OUTPUT "\nnote: fp8-delayed holds for the first forward pass alone where layers are computed again: ")
cli("8 bits that recomputation by operators ends" ARGS run --full @WORK@/own.yaml --samples 0 --faster 0
  SHELL "sed 's|mi300x-8|h100-8|; s|{zero: 3}|{zero: fsdp, precision: fp8-delayed, checkpointing: operators}|; s|deepspeed-hf-rocm|fsdp2-eager|; s|^measured.*||' @ROOT@/tests/cli/tiny.yaml >@WORK@/own.yaml; \"$@\""
  OUTPUT "\nnote: fp8-delayed: PyTorch's recomputation by operators calls the modules outside of their autocast")
cli("a precision is an entry of the catalogue" ARGS show fp8-tensorwise
  OUTPUT "products of attention, feed_forward run in fp8.*fsdp can gather weights in this type")
cli("a whole model in 32 bits" ARGS show fp32 OUTPUT "all numbers have 32 bits; products run in fp32")
cli("an Axolotl file that asks for no 16 bits trains in 32" ARGS import @WORK@/wide.yaml
  SHELL "sed 's|^bf16:.*|bf16: false|; s|^tf32:.*|tf32: true|' @ROOT@/tests/cli/axolotl/small-sft.8xMI300.yaml >@WORK@/wide.yaml; cp @ROOT@/tests/cli/axolotl/*.json @WORK@; \"$@\""
  OUTPUT "precision: tf32")
cli("a model in 32 bits as another program's file" ARGS export llama32-3b-sft-zero3 --set strategy.precision=tf32 --as axolotl -o @WORK@/wide.yaml
  SHELL "\"$@\" >/dev/null 2>&1; sed 1d @WORK@/wide.yaml | grep -c 'strategy.precision'; grep 32: @WORK@/wide.yaml; cat @WORK@/*.json | grep -A1 bf16"
  OUTPUT "^0\ntf32: true\n  \"bf16\": {\n    \"enabled\": false")
