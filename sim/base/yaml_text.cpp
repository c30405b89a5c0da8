#include "sim/base/yaml_text.hpp"

#include "sim/base/letters.hpp"

namespace stepsim {

std::string yaml_quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return on_one_line(result) + '"';
}

}  // namespace stepsim
