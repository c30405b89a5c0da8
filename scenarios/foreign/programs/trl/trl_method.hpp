// This tells which training arguments of TRL are for: by the program that they are given to, by
// keys that only one trainer has, by the names of the file and its folder.
#pragma once

#include <string>
#include <vector>

#include "scenarios/foreign/programs/hf/trainer_reader.hpp"

namespace stepsim {

struct TrlMethod {
  HfTraining training = HfTraining::sft;
  std::string key{};           // that decides; empty: none does
  bool plain = false;          // the trainer of transformers itself, not one of TRL's
  bool leave_one_out = false;  // RLOO, which is told what GRPO is
};

// Tells the method. If the program does not say it, what decides stands among the assumptions.
// Throws UserError for a training that is not read.
TrlMethod read_trl_method(const SourceQuestion& question, const Table& source,
                          std::vector<Assumption>& assumptions);

}  // namespace stepsim
