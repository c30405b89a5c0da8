// This writes one step as the data of a page.
#pragma once

#include "analysis/report/page.hpp"
#include "sim/base/json.hpp"

namespace stepsim {

// Writes the step, with its timeline in about `most_spans` spans.
void write_step(JsonWriter& json, const PageStep& step, std::size_t most_spans);

}  // namespace stepsim
