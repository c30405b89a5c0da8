// This reads a configuration file of TorchTitan.
#pragma once

#include "scenarios/foreign/table/source_question.hpp"
#include "scenarios/foreign/table/translation.hpp"
#include "sim/base/config.hpp"

namespace stepsim {

// `source` is the file with what the command line changes in it. Throws UserError with all that is
// wrong with it; what a scenario's reader checks is left to that.
Translation translate_torchtitan(const SourceQuestion& question, const Document& source);

}  // namespace stepsim
