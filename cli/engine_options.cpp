#include "cli/engine_options.hpp"

#include <fmt/format.h>

#include "cli/result.hpp"
#include "sim/base/error.hpp"

namespace stepsim {

Player player_of(const Options& options) {
  const std::string word = word_of(options, "engine", "auto", {"auto", "own", "simgrid", "both"});
  const auto choice = static_cast<EngineChoice>(std::ranges::find(engine_choice_names, word) -
                                                engine_choice_names.begin());
  std::vector<std::string> settings = all_of(options, "cfg");
  if (choice == EngineChoice::own && !settings.empty())
    throw UserError("--cfg: is for SimGrid, which --engine own leaves out");
  for (const std::string& setting : settings)
    if (const std::size_t colon = setting.find(':');
        colon == 0 || colon == std::string::npos || colon + 1 == setting.size())
      throw UserError(fmt::format(
          "--cfg: expected KEY:VALUE, such as maxmin/precision:1e-9, not \"{}\"", setting));
  return Player(choice, std::move(settings));
}

Record played_record(const std::optional<PlayedBy>& by) {
  return parts_if("engine", "that played it", by, [](const PlayedBy& each) -> Records {
    return {{"name", "simgrid, own, or both where only some replays were SimGrid's",
             each.simgrid == 0 ? "own"
             : each.own == 0   ? "simgrid"
                               : "both"},
            {"version", "of SimGrid; empty where it played nothing", each.version},
            {"difference", "between the makespans of both engines, the largest, as a share",
             each.difference},
            {"energy_difference",
             "between what SimGrid's plugins meter and the integral, the largest of a device, as a "
             "share; null: they are switched on where energy is asked for",
             each.energy_difference}};
  });
}

std::string played_text(const PlayedBy& by) {
  return fmt::format("\n{}\n", to_text(by));
}

}  // namespace stepsim
