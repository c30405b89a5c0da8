// Files of other programs as text, and what becomes of them.
#pragma once

#include <algorithm>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/foreign/door/sources.hpp"
#include "tests/support/source_data.hpp"
#include "tests/support/temporary_folder.hpp"

namespace stepsim {

inline const Catalogue& data = source_data();

inline Translation translate(const std::string& text, const std::vector<Setting>& settings = {}) {
  const TemporaryFolder folder;
  const std::string file = folder.file("own.yaml");
  std::ofstream(file) << text;
  return translate_source(data, file, settings).value();
}

inline std::string value_at(const Translation& translation, std::string_view path) {
  const auto line = std::find_if(translation.lines.begin(), translation.lines.end(),
                                 [&](const TranslatedLine& each) { return each.path == path; });
  return line == translation.lines.end() ? "" : line->value;
}

}  // namespace stepsim
