// This writes a sweep as a part of a page.
#pragma once

#include "analysis/report/page.hpp"
#include "analysis/studies/sweep/sweep_what_ifs.hpp"

namespace stepsim {

Records page_sweep(const SweepTable& table, const SweepReport& report, const SweepAdvice& advice);

}  // namespace stepsim
