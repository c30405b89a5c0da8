// Settings of verl, as its files have them or as a script sets them.
#pragma once

#include <string>
#include <string_view>

#include "scenarios/foreign/table/mapped_source.hpp"

namespace stepsim {

// Returns a key of the learners: "actor_rollout_ref.actor.strategy".
std::string actor_key(std::string_view key);

// The type that the model is loaded in, which FSDP's parameters and their moments keep.
void put_model_dtype(MappedSource& source, std::string_view key);

}  // namespace stepsim
