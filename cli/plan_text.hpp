// The plans of a job as a person or a program reads them.
#pragma once

#include <string>

#include "analysis/studies/plan/plan_batches.hpp"
#include "analysis/studies/plan/plan_search.hpp"
#include "cli/job_cost.hpp"
#include "cli/result_kinds.hpp"

namespace stepsim {

// Writes "4 s: 7.31 s a step by data 32 x TP 2, micro-batch 1; nothing that is left is below 6.9
// s".
std::string best_so_far_text(const PlanSpace& space, PlanGoal goal, const SoFar& so_far);
// `taken` stands behind the sentence.
std::string plan_answer_text(const PlanSpace& space, const PlanSearch& search,
                             const PlanAnswer& answer, const Rates& rates,
                             const std::string& taken = "");
// Says which batches beside the one that was asked about are better.
std::string batches_text(const PlanSpace& space, const std::vector<OtherBatch>& better);
Records plan_answer_records(const PlanSpace& space, const PlanSearch& search,
                            const PlanAnswer& answer, const Rates& rates,
                            const std::vector<OtherBatch>& batches,
                            const std::optional<PlayedBy>& played);

}  // namespace stepsim
