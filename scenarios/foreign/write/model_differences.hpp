// This says what a file that describes a model by its widths loses of it.
#pragma once

#include <string>
#include <vector>

#include "workloads/model/model.hpp"

namespace stepsim {

// A line for each fact that is another one in `read`: "window: 4096 tokens; here it is none". How
// tensors are stored is left out: the program that reads the file stores them its own way.
std::vector<std::string> model_differences(const Model& model, const Model& read);

}  // namespace stepsim
