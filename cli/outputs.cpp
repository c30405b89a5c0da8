#include "cli/outputs.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "scenarios/read/scenario_catalog.hpp"
#include "sim/base/error.hpp"

namespace stepsim {

void require_no_input(const std::string& output, std::span<const std::string> inputs) {
  std::error_code failed;
  for (const std::string& input : inputs)
    if (std::filesystem::equivalent(output, input, failed) && !failed)
      throw UserError(
          {{output, 0, "",
            output == input ? "is read by this command and would be overwritten: name another file"
                            : fmt::format("is {}, which is read by this command and would be "
                                          "overwritten: name another file",
                                          input)}});
}

std::vector<std::string> files_of(const CommandLine& line, const std::string& word,
                                  const Scenario& scenario) {
  std::vector<std::string> files = scenario.files;
  files.push_back(find_scenario(line.data, word));
  return files;
}

}  // namespace stepsim
