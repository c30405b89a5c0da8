// This reads a DeepSpeed configuration with nothing beside it: the rest is as the Hugging Face
// trainer has it when nobody says otherwise.
#pragma once

#include "scenarios/foreign/table/source_question.hpp"
#include "scenarios/foreign/table/translation.hpp"
#include "sim/base/config.hpp"

namespace stepsim {

// `source` is that file. A model has to be among the settings. Throws UserError.
Translation translate_deepspeed(const SourceQuestion& question, const Document& source);

}  // namespace stepsim
