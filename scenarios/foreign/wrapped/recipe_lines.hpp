// These read a Makefile and a Dockerfile: their commands are a script.
#pragma once

#include <string_view>

#include "scenarios/foreign/wrapped/wrapped_source.hpp"

namespace stepsim {

// Commands of all targets, one after the other; $(NAME) is a variable as in a shell.
WrappedSource read_makefile(std::string_view text);
// What the container starts; what building it runs trains nothing.
WrappedSource read_dockerfile(std::string_view text);

}  // namespace stepsim
