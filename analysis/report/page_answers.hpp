// What studies found, as parts of a page: why two steps differ, and which claims hold.
#pragma once

#include <span>

#include "analysis/report/page.hpp"
#include "analysis/studies/claims/judgement.hpp"
#include "analysis/studies/explain/explain.hpp"

namespace stepsim {

PageGap page_gap(const Explanation& explanation);
std::vector<PageClaim> page_claims(std::span<const JudgedClaim> claims);

}  // namespace stepsim
