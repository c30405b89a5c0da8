// These write what studies found as parts of a page: why two steps differ, and which claims hold.
#pragma once

#include <span>

#include "analysis/report/page.hpp"
#include "analysis/studies/claims/judgement.hpp"
#include "analysis/studies/explain/explain.hpp"

namespace stepsim {

Records page_gap(const Explanation& explanation);
// Returns the claims as items of a list.
Records page_claims(std::span<const JudgedClaim> claims);

}  // namespace stepsim
