// Each of these puts a file of one program in the words of a scenario: `source` is the file, or the
// arguments of a script, with what the command line changes in it. They throw UserError with all
// that is wrong with it; what a scenario's reader checks is left to that.
#pragma once

#include "scenarios/foreign/table/source_question.hpp"
#include "scenarios/foreign/table/translation.hpp"
#include "sim/base/config.hpp"

namespace stepsim {

using Translate = Translation(const SourceQuestion& question, const Document& source);

// AutoTrain's command line says in options what its files say in blocks; it trains with TRL. The
// second trainer of LLaMA-Factory has plugins for blocks (`dist_config`, `peft_config`).
// Megatron-Bridge says in blocks ("model.num_layers") what Megatron-LM's arguments do. Of
// open-instruct the first is grpo_fast.py, the second finetune.py and dpo_tune_cache.py. Arguments
// of TRL's programs are keywords of its constructors.
Translate translate_automodel, translate_autotrain, translate_axolotl, translate_gpt_neox,
    translate_litgpt, translate_llama_factory, translate_llama_factory_v1, translate_llm_foundry,
    translate_megatron, translate_megatron_swift, translate_ms_swift, translate_nanotron,
    translate_nemo_rl, translate_open_instruct, translate_open_instruct_tuning, translate_openrlhf,
    translate_slime, translate_torchtitan, translate_torchtune, translate_trl, translate_verl,
    translate_verl_sft;
// A DeepSpeed configuration with nothing beside it is run by the Hugging Face trainer. A model has
// to be among the settings.
Translate translate_deepspeed;

}  // namespace stepsim
