// These write values into YAML.
#pragma once

#include <string>
#include <string_view>

namespace stepsim {

// A text as YAML that reads back as this text.
std::string yaml_quoted(std::string_view text);

}  // namespace stepsim
