// Arguments of OpenRLHF, out of a script that starts it.
#pragma once

#include "scenarios/foreign/table/source_question.hpp"
#include "scenarios/foreign/table/translation.hpp"
#include "sim/base/config.hpp"

namespace stepsim {

// `source` is the arguments; which training it is, the launch says. Throws UserError.
Translation translate_openrlhf(const SourceQuestion& question, const Document& source);

}  // namespace stepsim
