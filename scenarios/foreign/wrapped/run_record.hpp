// This reads what Weights & Biases keeps of a run: config.yaml with all arguments as they were, and
// wandb-metadata.json with the program, its words and the GPUs.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "scenarios/foreign/wrapped/wrapped_source.hpp"

namespace stepsim {

class Catalogue;

// Return nothing where the text is no such file. Throw UserError about one that cannot be read.
std::optional<WrappedSource> read_run_config(const Catalogue& data, std::string_view text,
                                             const std::string& file);
std::optional<WrappedSource> read_run_metadata(std::string_view text, const std::string& file);

}  // namespace stepsim
