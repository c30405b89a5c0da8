// Some files say in words of their own what a program that is read says, too: a table has both.
#pragma once

#include <optional>
#include <string>

#include "scenarios/foreign/launch/launches.hpp"
#include "scenarios/foreign/wrapped/wrapped_source.hpp"
#include "sim/base/config.hpp"

namespace stepsim {

class Catalogue;

// Returns nothing where the file is in no dialect. Throws UserError with a lesson about a file that
// is known and holds no training that is read.
std::optional<WrappedSource> read_dialect(const Catalogue& data, const Document& document);

}  // namespace stepsim
