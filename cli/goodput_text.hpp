// These write what is left of a job's time when parts of its machine fail.
#pragma once

#include <optional>
#include <string>

#include "analysis/studies/predict/goodput.hpp"
#include "sim/base/record.hpp"

namespace stepsim {

// Writes a sentence: "94.1 % of the time of a job whose parts fail: ...".
std::string goodput_text(const Goodput& goodput);
// Writes the same in a few words.
std::string goodput_in_short(const Goodput& goodput);
Records goodput_records(const std::optional<Goodput>& goodput);

}  // namespace stepsim
