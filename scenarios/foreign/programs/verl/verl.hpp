// Settings of verl, as its files have them or as a script sets them.
#pragma once

#include <string>
#include <string_view>

#include "scenarios/foreign/table/mapped_source.hpp"
#include "scenarios/foreign/table/source_question.hpp"
#include "scenarios/foreign/table/translation.hpp"
#include "sim/base/config.hpp"

namespace stepsim {

// Returns a key of the learners: "actor_rollout_ref.actor.strategy".
std::string actor_key(std::string_view key);

// The type that the model is loaded in, which FSDP's parameters and their moments keep.
void put_model_dtype(MappedSource& source, std::string_view key);

// Throws UserError with all that is wrong with it; what a scenario's reader checks is left to that.
Translation translate_verl(const SourceQuestion& question, const Document& source);

}  // namespace stepsim
