// These tell by what a file holds which program it is of, and translate it into a scenario.
#pragma once

#include <optional>
#include <string>

#include "scenarios/foreign/table/source_question.hpp"
#include "scenarios/foreign/table/translation.hpp"
#include "scenarios/foreign/wrapped/wrapped_source.hpp"
#include "sim/base/config.hpp"

namespace stepsim {

class Catalogue;

// Returns whether the file is a program's text: that is read for what it starts, never as YAML.
bool is_script(const std::string& file);
// Returns what a file holds, to tell it from others: a document; of a script its text under
// "script".
Document content_of(const std::string& file);

// Returns nothing when the file is a scenario already. Throws UserError when it is of no kind that
// can be read, or of two at once.
std::optional<Translation> translate_source(const Catalogue& data, const std::string& file,
                                            Settings settings);

// Throws UserError with the first line that names a diffusion model or what trains these; a file
// that cannot be read otherwise is best told so.
void refuse_diffusion(const Catalogue& data, const std::string& file);

// This opens files that wrap a training in something else: notebooks, jobs of clusters, Makefiles.
class Catalogue;

// Returns whether the file's name alone says that it wraps a program or a script.
bool is_wrapping(const std::string& file);

// Returns nothing where the file wraps nothing: it is a script, settings or a scenario. Throws
// UserError about what cannot be read.
std::optional<WrappedSource> unwrapped(const Catalogue& data, const std::string& file,
                                       Settings settings);

}  // namespace stepsim
