// This puts a training of MosaicML's LLM Foundry in the words of a scenario.
#pragma once

#include "scenarios/foreign/table/source_question.hpp"
#include "scenarios/foreign/table/translation.hpp"

namespace stepsim {

Translation translate_llm_foundry(const SourceQuestion& question, const Document& document);

}  // namespace stepsim
