// This opens files that wrap a training in something else: notebooks, jobs of clusters, Makefiles.
#pragma once

#include <optional>
#include <string>

#include "scenarios/foreign/table/source_question.hpp"
#include "scenarios/foreign/wrapped/wrapped_source.hpp"

namespace stepsim {

class Catalogue;

// Returns whether the file's name alone says that it wraps a program or a script.
bool is_wrapping(const std::string& file);

// Returns nothing where the file wraps nothing: it is a script, settings or a scenario. Throws
// UserError about what cannot be read.
std::optional<WrappedSource> unwrapped(const Catalogue& data, const std::string& file,
                                       Settings settings);

}  // namespace stepsim
