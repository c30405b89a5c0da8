// The job block of a GRPO scenario, in open-instruct's words, and the rules that it has to keep.
#pragma once

#include <string>
#include <vector>

#include "scenarios/scenario.hpp"
#include "workloads/grpo/placement.hpp"

namespace stepsim {

// Puts lengths of responses that stand in a file of their own, beside the scenario, in the place of
// its name.
void take_length_file(Document& document);
// Reads everything but what depends on the cluster.
Grpo read_grpo(const Table& job);
// Lays DeepSpeed's switches, which have open-instruct's names in the job block, under the strategy
// block, so that whatever follows from them is as if they stood there. One that says something else
// than that block is noted.
void lay_switches(Document& scenario);
// Places the learners, once the number of nodes is known.
void place_learners(const Table& job, const Cluster& cluster, Grpo& grpo);

// The second copy of parameters when the job says nothing of it: of as many ranks as divide the
// learners, at most open-instruct's default. A note says when they are fewer.
void fit_default_partition(const Table& job, Scenario& scenario);

// Notes every rule that is broken, with the reason.
void check_grpo(const Table& job, const Scenario& scenario);

// Keys of open-instruct that were given and make no difference to the time.
std::vector<std::string> grpo_notes(const Table& job);

// Returns what is allowed and costs something.
std::vector<std::string> grpo_warnings(const Scenario& scenario, const Placement& placement);

}  // namespace stepsim
