// Translates arguments of TRL's programs, and keywords of its constructors.
#pragma once

#include "scenarios/foreign/table/source_question.hpp"
#include "scenarios/foreign/table/translation.hpp"
#include "sim/base/config.hpp"

namespace stepsim {

// Throws UserError with all that is wrong with it; what a scenario's reader checks is left to that.
Translation translate_trl(const SourceQuestion& question, const Document& source);

}  // namespace stepsim
