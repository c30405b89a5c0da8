// These notes say what a sweep has to say of the file that its points are made from.
#pragma once

#include <string>
#include <vector>

#include "analysis/studies/sweep/sweep_table.hpp"
#include "scenarios/assumption.hpp"

namespace stepsim {

struct SweepNotes {
  std::string taken;                    // as `run` prints it: what is assumed, what is not modelled
  std::string in_brief;                 // the same in a few lines
  std::vector<Assumption> assumptions;  // the points may say what these leave open
  std::vector<std::string> notes;       // of the file, and of keys that are varied for nothing
};
SweepNotes notes_on(const Catalogue& data, const SweepTable& table);

}  // namespace stepsim
