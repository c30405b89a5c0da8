// A plan of a GRPO job says which GPUs learn, how large engines are, and, where a learner has too
// little memory for any of them, what takes some off it.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "analysis/studies/plan/plan_space.hpp"

namespace stepsim {

// Returns the kinds of plans that can be set. Engines are as many as find room beside the learners,
// unless the question sets their number.
std::vector<PlanKind> grpo_kinds(const Scenario& asked, const PlanQuestion& question);

bool is_set(std::span<const Setting> settings, std::string_view key);

}  // namespace stepsim
