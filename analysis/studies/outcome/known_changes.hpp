// Changes of a scenario that somebody may not have thought of.
#pragma once

#include <string>
#include <vector>

#include "scenarios/read/resolved.hpp"
#include "scenarios/scenario.hpp"

namespace stepsim {

// A change that gains less than this share of the throughput is not worth showing.
inline constexpr double worth_showing = 0.005;

// These settings go together.
struct KnownChange {
  std::vector<Setting> settings;
  double rows = 1;  // of a step, over those that it had before
};

// Returns every change that is known here, other jobs and machines among them. One that means
// nothing for the scenario, or changes nothing, or is worse, drops out when it is tried.
std::vector<KnownChange> known_changes(const Catalogue& data, const Scenario& scenario);

// Returns the changes under which a step still works on the same rows on the same GPUs, the most
// promising first: a micro-batch changes with the number of micro-batches. None of them repeats
// what the scenario says.
std::vector<std::vector<Setting>> same_job_changes(const Catalogue& data, const Scenario& scenario);

// Writes "job.micro_batch: 4, job.gradient_accumulation: 2"; "job.micro_batch: 4 (half the rows)".
std::string change_text(const std::vector<Setting>& settings, double rows = 1);

bool says_so(const std::vector<ResolvedKey>& keys, const Setting& setting);

// Returns whether a stack's users can have this value of strategy.zero. Those that choose among all
// of DeepSpeed's stages have FSDP from the same trainer.
bool has_sharding(const Stack& stack, const std::string& zero);

}  // namespace stepsim
