// Translates arguments of open-instruct's finetune.py and dpo_tune_cache.py, which loop by
// themselves under Accelerate.
#pragma once

#include "scenarios/foreign/table/source_question.hpp"
#include "scenarios/foreign/table/translation.hpp"
#include "sim/base/config.hpp"

namespace stepsim {

// Throws UserError with all that is wrong with it; what a scenario's reader checks is left to that.
Translation translate_open_instruct_tuning(const SourceQuestion& question, const Document& source);

}  // namespace stepsim
