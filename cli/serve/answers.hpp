// These answers are what the page of `serve` is told: the same as the commands say. Each throws
// UserError.
#pragma once

#include <string>

#include "cli/serve/question.hpp"
#include "cli/serve/respond.hpp"

namespace stepsim {

// Puts the files into the current folder, where the scenarios of the question find them.
void put_files(const Serving& serving, const Question& question);

// The page itself, with what the catalogue holds and every key there is.
std::string first_page(const Serving& serving, const Question&);
// Answers one step: what `run --json` prints, the scenario's keys, and the command line. There is
// no interval unless it is asked for, so that the first answer is there at once.
std::string step_answer(const Serving& serving, const Question& question);
// Answers two steps: what `explain --samples 0 --json` prints.
std::string gap_answer(const Serving& serving, const Question& question);
// Says what each posted file is: a model, a file of DeepSpeed, or something to begin with.
std::string file_answer(const Serving& serving, const Question& question);
// The page that `report` makes of one step or two.
std::string report_page(const Serving& serving, const Question& question);

}  // namespace stepsim
