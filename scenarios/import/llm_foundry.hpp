// This puts a training of MosaicML's LLM Foundry in the words of a scenario.
#pragma once

#include "scenarios/import/source_question.hpp"
#include "scenarios/import/translation.hpp"

namespace stepsim {

Translation translate_llm_foundry(const SourceQuestion& question, const Document& document);

}  // namespace stepsim
