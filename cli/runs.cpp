#include "cli/runs.hpp"

#include <fmt/format.h>

#include "analysis/studies/grpo_trace.hpp"
#include "analysis/studies/prediction.hpp"
#include "analysis/studies/worker.hpp"
#include "sim/error.hpp"
#include "sim/run_file.hpp"

namespace stepsim {

Run load_run(const CommandLine& line, const std::string& word, std::span<const Setting> settings) {
  if (is_run_file(word)) {
    if (!settings.empty())
      throw UserError(
          fmt::format("--set changes a scenario, and \"{}\" is a saved trace: what it holds has "
                      "happened",
                      word));
    return read_run(word);
  }
  const Scenario scenario = load_scenario(line.data, word, settings);
  // In a process of its own, so that a second one can be replayed after it.
  return decode_run(in_worker([&] {
                      return encode_run(scenario.grpo ? grpo_trace(scenario, predict_grpo(scenario))
                                                      : predict(scenario, Folding::automatic).run);
                    }),
                    word);
}

}  // namespace stepsim
