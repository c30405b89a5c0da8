#include "tests/fuzz/targets.hpp"

#include <array>
#include <stdexcept>

#include "sim/base/error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace stepsim::fuzz {

std::string as_file(std::string_view name, std::string_view bytes) {
  static const TemporaryFolder folder;
  put_bytes(folder.file(name), bytes);
  return folder.file(name);
}

bool is_turn_of(const std::string& bytes) {
  return std::hash<std::string>{}(bytes) % 16 == 0;
}

void read_by(std::string_view target, const std::string& bytes) {
  constexpr std::size_t longest_message = 1u << 20;
  for (const auto targets : {file_targets(), scenario_targets(), study_targets()})
    for (const Target& each : targets) {
      if (each.name != target) continue;
      try {
        each.read(bytes);
      } catch (const UserError& error) {
        if (std::string_view(error.what()).size() > longest_message)
          throw std::logic_error("a message of more than a megabyte");
      }
      return;
    }
  throw std::runtime_error("no target of this name");
}

}  // namespace stepsim::fuzz
