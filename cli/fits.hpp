// `fit` can fit these subjects, one function each. The words are those behind `fit SUBJECT`.
#pragma once

#include <span>
#include <string>

#include "analysis/studies/fidelity/robust_fit.hpp"
#include "cli/command.hpp"
#include "cli/options.hpp"
#include "sim/base/record.hpp"

namespace stepsim {

int fit_stack(const CommandLine& line, std::span<const std::string> words, const Options& options);
int fit_kernels(const CommandLine& line, std::span<const std::string> words,
                const Options& options);
int fit_network(const CommandLine& line, std::span<const std::string> words,
                const Options& options);

// These show how far off rows are, by source.
std::string source_table(std::span<const FittedSource> sources);
RecordList source_list(std::span<const FittedSource> sources);

}  // namespace stepsim
