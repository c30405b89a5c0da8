// This puts a recipe of NeMo AutoModel in the words of a scenario.
#pragma once

#include "scenarios/foreign/table/source_question.hpp"
#include "scenarios/foreign/table/translation.hpp"

namespace stepsim {

Translation translate_automodel(const SourceQuestion& question, const Document& document);

}  // namespace stepsim
