// Files of LLaMA-Factory's second trainer, whose blocks are plugins (`dist_config`, `peft_config`).
#pragma once

#include "scenarios/foreign/table/source_question.hpp"
#include "scenarios/foreign/table/translation.hpp"
#include "sim/base/config.hpp"

namespace stepsim {

// Throws UserError with all that is wrong with it; what a scenario's reader checks is left to that.
Translation translate_llama_factory_v1(const SourceQuestion& question, const Document& source);

}  // namespace stepsim
