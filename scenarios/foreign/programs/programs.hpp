// Each of these puts a file of one program in the words of a scenario: `source` is the file, or the
// arguments of a script, with what the command line changes in it. They throw UserError with all
// that is wrong with it; what a scenario's reader checks is left to that.
#pragma once

#include "scenarios/foreign/table/source_question.hpp"
#include "scenarios/foreign/table/translation.hpp"
#include "sim/base/config.hpp"

namespace stepsim {

Translation translate_automodel(const SourceQuestion& question, const Document& source);
// AutoTrain's command line says in options what its files say in blocks; it trains with TRL.
Translation translate_autotrain(const SourceQuestion& question, const Document& source);
Translation translate_axolotl(const SourceQuestion& question, const Document& source);
// A DeepSpeed configuration with nothing beside it is run by the Hugging Face trainer. A model has
// to be among the settings.
Translation translate_deepspeed(const SourceQuestion& question, const Document& source);
Translation translate_gpt_neox(const SourceQuestion& question, const Document& source);
Translation translate_llama_factory(const SourceQuestion& question, const Document& source);
// The second trainer of LLaMA-Factory has plugins for blocks (`dist_config`, `peft_config`).
Translation translate_llama_factory_v1(const SourceQuestion& question, const Document& source);
Translation translate_llm_foundry(const SourceQuestion& question, const Document& source);
// Megatron-Bridge says in blocks ("model.num_layers") what Megatron-LM's arguments do.
Translation translate_megatron(const SourceQuestion& question, const Document& source);
Translation translate_megatron_swift(const SourceQuestion& question, const Document& source);
Translation translate_ms_swift(const SourceQuestion& question, const Document& source);
Translation translate_nemo_rl(const SourceQuestion& question, const Document& source);
// The first is grpo_fast.py, the second finetune.py and dpo_tune_cache.py.
Translation translate_open_instruct(const SourceQuestion& question, const Document& source);
Translation translate_open_instruct_tuning(const SourceQuestion& question, const Document& source);
Translation translate_openrlhf(const SourceQuestion& question, const Document& source);
Translation translate_slime(const SourceQuestion& question, const Document& source);
Translation translate_torchtitan(const SourceQuestion& question, const Document& source);
Translation translate_torchtune(const SourceQuestion& question, const Document& source);
// Arguments of TRL's programs are keywords of its constructors.
Translation translate_trl(const SourceQuestion& question, const Document& source);
Translation translate_verl(const SourceQuestion& question, const Document& source);
Translation translate_verl_sft(const SourceQuestion& question, const Document& source);

}  // namespace stepsim
