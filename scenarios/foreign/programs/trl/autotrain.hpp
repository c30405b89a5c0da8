// AutoTrain's command line says in options what its files say in blocks; it trains with TRL.
#pragma once

#include "scenarios/foreign/table/source_question.hpp"
#include "scenarios/foreign/table/translation.hpp"
#include "sim/base/config.hpp"

namespace stepsim {

Translation translate_autotrain(const SourceQuestion& question, const Document& source);

}  // namespace stepsim
