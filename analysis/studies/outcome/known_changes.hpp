// Changes of a scenario that somebody may not have thought of.
#pragma once

#include <string>
#include <vector>

#include "scenarios/scenario.hpp"

namespace stepsim {

// A change that gains less than this share of the throughput is not worth showing.
inline constexpr double worth_showing = 0.005;

// Every single change that is known here, other jobs and machines among them. One that means
// nothing for the scenario, or changes nothing, or is worse, drops out when it is tried.
std::vector<Setting> known_changes(const std::string& data, const Scenario& scenario);

// Those under which a step still works on the same rows on the same GPUs, the most promising first:
// a micro-batch changes with the number of micro-batches. None of them repeats what the scenario
// says.
std::vector<std::vector<Setting>> same_job_changes(const std::string& data,
                                                   const Scenario& scenario);

// "job.micro_batch: 4, job.gradient_accumulation: 2"
std::string change_text(const std::vector<Setting>& settings);

}  // namespace stepsim
