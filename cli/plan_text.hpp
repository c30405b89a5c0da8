// The plans of a job as a person or a program reads them.
#pragma once

#include <string>

#include "analysis/studies/plan/plan_search.hpp"
#include "cli/job_cost.hpp"
#include "cli/result_kinds.hpp"

namespace stepsim {

// `taken` stands behind the sentence.
std::string plan_answer_text(const PlanSpace& space, const PlanSearch& search,
                             const PlanAnswer& answer, const Rates& rates,
                             const std::string& taken = "");
Records plan_answer_records(const PlanSpace& space, const PlanSearch& search,
                            const PlanAnswer& answer, const Rates& rates,
                            const std::optional<PlayedBy>& played);

}  // namespace stepsim
