// Rows may hold one document each: these say how long documents are, and how far rows are padded.
#pragma once

#include <vector>

#include "topology/cluster.hpp"
#include "workloads/strategy/job.hpp"
#include "workloads/strategy/strategy.hpp"

namespace stepsim {

// Tokens that are left of a document of job.documents on average, as rows are cut.
double kept_tokens(const Job& job);

// Returns the job that a step usually works on. Rows that are not filled up to job.sequence have
// fewer slots: on average, those of the rank that others wait for. All other jobs stay as they are.
Job usual_rows(const Job& job, const Strategy& strategy, const Cluster& cluster);

// Returns the slots of micro-batches one after the other, as shares of those of full ones: each of
// `count` has another part of their distribution. Empty: all are full.
std::vector<double> shares_of_slots(const Job& job, std::size_t count);

// Returns the job that memory has to hold: a micro-batch with a row of full length.
Job full_rows(const Job& job);

}  // namespace stepsim
