#include "cli/goodput_text.hpp"

#include <fmt/format.h>

#include "sim/base/readable.hpp"
#include "sim/base/table.hpp"

namespace stepsim {
namespace {

std::string interval_text(const Goodput& goodput) {
  return goodput.interval == 1 ? "every step" : fmt::format("every {} steps", goodput.interval);
}

}  // namespace

std::string goodput_text(const Goodput& g) {
  std::string text = fmt::format(
      "{} of the time of a job whose parts fail once in {}: {} writes a checkpoint {}, {} is done "
      "again, {} goes by until steps go on",
      percent(g.useful), to_text(Seconds{g.between}), percent(g.saving), interval_text(g),
      percent(g.lost), percent(g.down));
  if (g.waiting > 0) text += fmt::format(", {} waits for nodes or a place", percent(g.waiting));
  if (g.slower > 0) text += fmt::format(", {} goes to fewer nodes", percent(g.slower));
  if (g.wall.value > 0)
    text += fmt::format("; {:.3g} failures in the mean, and eight of ten such jobs take {} to {}",
                        g.failures, to_text(g.low), to_text(g.high));
  return text;
}

std::string goodput_in_short(const Goodput& g) {
  return fmt::format("goodput {} with a failure once in {}, a checkpoint {}", percent(g.useful),
                     to_text(Seconds{g.between}), interval_text(g));
}

Records goodput_records(const std::optional<Goodput>& goodput) {
  const auto of = [&](auto Goodput::*member) {
    return goodput ? std::optional((*goodput).*member) : std::nullopt;
  };
  const auto wall = [&](Seconds Goodput::*member) {
    return goodput && goodput->wall.value > 0 ? std::optional(((*goodput).*member).value / 3600)
                                              : std::nullopt;
  };
  return {
      {"goodput", "share of a run's time, with failures", of(&Goodput::useful), Measure::share},
      {"saving_share", "of it: checkpoints", of(&Goodput::saving), Measure::share},
      {"lost_share", "of it: steps done again", of(&Goodput::lost), Measure::share},
      {"down_share", "of it: until steps go on", of(&Goodput::down), Measure::share},
      {"waiting_share", "of it: for nodes or a place", of(&Goodput::waiting), Measure::share},
      {"slower_share", "of it: steps on fewer nodes", of(&Goodput::slower), Measure::share},
      {"save_steps", "between checkpoints", of(&Goodput::interval)},
      {"failures", "of the job, in the mean", of(&Goodput::failures)},
      {"wall_low_h", "one job in ten, by luck, ends before", wall(&Goodput::low), Measure::hours},
      {"wall_high_h", "one job in ten, by luck, ends after", wall(&Goodput::high), Measure::hours}};
}

}  // namespace stepsim
