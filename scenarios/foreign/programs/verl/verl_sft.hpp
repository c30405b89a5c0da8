// Settings of verl's supervised training, as a script sets them.
#pragma once

#include "scenarios/foreign/table/source_question.hpp"
#include "scenarios/foreign/table/translation.hpp"
#include "sim/base/config.hpp"

namespace stepsim {

// Throws UserError with all that is wrong with it; what a scenario's reader checks is left to that.
Translation translate_verl_sft(const SourceQuestion& question, const Document& source);

}  // namespace stepsim
