// TensorBoard's event files: what a run reported, and when.
#pragma once

#include <string_view>
#include <vector>

namespace stepsim {

struct ReportedStep {
  double step = 0, time = 0;  // s of the clock on the wall
};

bool is_event_file(std::string_view bytes);
// Returns the moments at which training reported a figure, in the file's order; evaluations are
// left out. A file that ends within a record is read up to there.
std::vector<ReportedStep> reported_steps(std::string_view bytes);

}  // namespace stepsim
