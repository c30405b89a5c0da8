// This puts a recipe's file of torchtune in the words of a scenario.
#pragma once

#include "scenarios/foreign/table/source_question.hpp"
#include "scenarios/foreign/table/translation.hpp"

namespace stepsim {

Translation translate_torchtune(const SourceQuestion& question, const Document& document);

}  // namespace stepsim
