// What `fit` can fit, one function each. The words are those behind `fit SUBJECT`.
#pragma once

#include <span>
#include <string>

#include "cli/command.hpp"
#include "cli/options.hpp"

namespace stepsim {

int fit_stack(const CommandLine& line, std::span<const std::string> words, const Options& options);
int fit_kernels(const CommandLine& line, std::span<const std::string> words,
                const Options& options);
int fit_network(const CommandLine& line, std::span<const std::string> words,
                const Options& options);

}  // namespace stepsim
