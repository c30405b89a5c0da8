// This reads programs over the trainer of transformers: TRL with its arguments or its constructors,
// LLaMA-Factory and ms-swift.
#pragma once

#include "scenarios/import/source_question.hpp"
#include "scenarios/import/translation.hpp"
#include "sim/base/config.hpp"

namespace stepsim {

Translation translate_trl(const SourceQuestion& question, const Document& source);
Translation translate_llama_factory(const SourceQuestion& question, const Document& source);
Translation translate_ms_swift(const SourceQuestion& question, const Document& source);

// Reads open-instruct's finetune.py and dpo_tune_cache.py, which loop by themselves under
// Accelerate.
Translation translate_open_instruct_tuning(const SourceQuestion& question, const Document& source);

}  // namespace stepsim
