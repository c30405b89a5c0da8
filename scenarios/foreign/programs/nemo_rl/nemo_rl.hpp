// This reads a configuration file of NeMo-RL.
#pragma once

#include "scenarios/foreign/table/source_question.hpp"
#include "scenarios/foreign/table/translation.hpp"
#include "sim/base/config.hpp"

namespace stepsim {

// Throws UserError with all that is wrong with it; what a scenario's reader checks is left to that.
Translation translate_nemo_rl(const SourceQuestion& question, const Document& source);

}  // namespace stepsim
