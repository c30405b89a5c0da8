#include "analysis/studies/explain/setting_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "analysis/studies/explain/shapley.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

// Below this share of a step a difference is rounding: micro-batches that repeat themselves are
// counted here, and replayed one by one where a step is looked at.
constexpr double replay_rounding = 1e-9;
// More settings than that have no place in a coalition's number; the least of them count as one.
constexpr std::size_t most_players = 20;

using Players = std::vector<std::vector<std::size_t>>;  // [player]: its settings

class MixedTimes {
 public:
  MixedTimes(std::size_t settings, Seconds a, const MixedReplay& replayed,
             const SettingOptions& options)
      : settings_(settings), replayed_(replayed), options_(options) {
    times_[Joined(settings)] = a.value;
  }

  void ask(const std::vector<Joined>& wanted) {
    std::vector<Joined> open;
    for (const Joined& each : wanted)
      if (!times_.contains(each) && std::ranges::find(open, each) == open.end())
        open.push_back(each);
    Tasks<Seconds> tasks;
    tasks.reserve(open.size());
    for (const Joined& each : open) tasks.emplace_back([&] { return replayed_(each); });
    const auto answers = in_workers(tasks, options_.workers, options_.progress);
    for (std::size_t i = 0; i < open.size(); ++i) times_[open[i]] = answers[i].value;
  }
  double of(const Joined& joined) const { return times_.at(joined); }
  Joined alone(std::size_t setting) const {
    Joined joined(settings_);
    joined[setting] = true;
    return joined;
  }
  Joined all_but(std::size_t setting) const {
    Joined joined(settings_, true);
    joined[setting] = false;
    return joined;
  }
  Joined all() const { return Joined(settings_, true); }
  std::size_t replays() const { return times_.size() - 1; }

 private:
  std::size_t settings_;
  const MixedReplay& replayed_;
  const SettingOptions& options_;
  std::map<Joined, double> times_;
};

bool alike(double x, double y) {
  return std::abs(x - y) <= replay_rounding * std::max(std::abs(x), std::abs(y));
}

Joined joined_by(const Players& players, Coalition coalition, std::size_t settings) {
  Joined joined(settings);
  for (std::size_t i = 0; i < players.size(); ++i)
    if ((coalition >> i & 1) != 0)
      for (const std::size_t setting : players[i]) joined[setting] = true;
  return joined;
}

// Acting settings do something alone, or when all others have joined.
struct Screened {
  std::vector<std::size_t> acting, idle;
};

Screened screened(const std::vector<DifferingSetting>& settings, MixedTimes& times) {
  Screened result;
  std::vector<Joined> wanted{times.all()};
  for (std::size_t i = 0; i < settings.size(); ++i)
    if (settings[i].matters) {
      wanted.push_back(times.alone(i));
      wanted.push_back(times.all_but(i));
    }
  times.ask(wanted);
  const double a = times.of(Joined(settings.size())), all = times.of(times.all());
  for (std::size_t i = 0; i < settings.size(); ++i) {
    const bool acts = settings[i].matters && !(alike(times.of(times.alone(i)), a) &&
                                               alike(times.of(times.all_but(i)), all));
    (acts ? result.acting : result.idle).push_back(i);
  }
  // Together they may do what none of them does.
  Joined without(settings.size());
  for (const std::size_t i : result.acting) without[i] = true;
  times.ask({without});
  if (alike(times.of(without), all)) return result;
  result.acting.insert(result.acting.end(), result.idle.begin(), result.idle.end());
  std::ranges::sort(result.acting);
  result.idle.clear();
  times.ask(mapped(result.acting, [&](std::size_t i) { return times.alone(i); }));
  return result;
}

// Two numbers whose product is the same on both sides are one choice: a batch in other parts, a
// sequence that is shared out in another way. Alone each of them is another job.
constexpr std::array one_choice = std::to_array<std::array<std::string_view, 2>>(
    {{"job.micro_batch", "job.gradient_accumulation"},
     {"strategy.sequence_parallel.ulysses", "strategy.sequence_parallel.ring"}});

bool are_one_choice(const DifferingSetting& x, const DifferingSetting& y) {
  const auto named = [&](const std::array<std::string_view, 2>& keys) {
    return (keys[0] == x.key && keys[1] == y.key) || (keys[1] == x.key && keys[0] == y.key);
  };
  if (std::ranges::none_of(one_choice, named)) return false;
  const auto a = number_from<double>(x.a), b = number_from<double>(x.b),
             other_a = number_from<double>(y.a), other_b = number_from<double>(y.b);
  return a && b && other_a && other_b && *a * *other_a == *b * *other_b;
}

// Beyond the most that there is room for, those that move A least are one player.
Players players_of(const std::vector<DifferingSetting>& settings,
                   const std::vector<std::size_t>& acting, const MixedTimes& times, double a) {
  std::vector<std::size_t> order = acting;
  std::ranges::stable_sort(order, [&](std::size_t x, std::size_t y) {
    return std::abs(times.of(times.alone(x)) - a) > std::abs(times.of(times.alone(y)) - a);
  });
  Players players;
  for (const std::size_t setting : order) {
    const auto partner = std::ranges::find_if(players, [&](const std::vector<std::size_t>& each) {
      return are_one_choice(settings[each.front()], settings[setting]);
    });
    if (partner != players.end())
      partner->push_back(setting);
    else if (players.size() < most_players)
      players.push_back({setting});
    else
      players.back().push_back(setting);
  }
  return players;
}

// Returns what the settings of each coalition save.
std::vector<double> worth_of(const ShapleyPlan& plan, const Players& players, std::size_t settings,
                             MixedTimes& times) {
  const std::vector<Joined> joined =
      mapped(plan.coalitions, [&](Coalition each) { return joined_by(players, each, settings); });
  times.ask(joined);
  const double before = times.of(Joined(settings));
  return mapped(joined, [&](const Joined& each) { return before - times.of(each); });
}

SettingRow row_of(const std::vector<DifferingSetting>& settings,
                  const std::vector<std::size_t>& player, const ShapleyValue& value,
                  MixedTimes& times) {
  const double step = times.of(Joined(settings.size()));
  const bool known = value.standard_error <= replay_rounding * step;
  Joined joined(settings.size());
  for (const std::size_t setting : player) joined[setting] = true;
  times.ask({joined});
  SettingRow row{.setting = settings[player.front()],
                 .joined = joined,
                 .seconds = {value.value},
                 .standard_error = {known ? 0 : value.standard_error},
                 .alone = {times.of(joined)},
                 .changed = {}};
  for (std::size_t i = 1; i < player.size(); ++i) {
    const DifferingSetting& other = settings[player[i]];
    row.setting.key += ", " + other.key;
    row.setting.text_a += ", " + other.text_a;
    row.setting.text_b += ", " + other.text_b;
  }
  return row;
}

Records setting_records(const DifferingSetting& setting) {
  return {{"key", "of the scenario, or a constant", setting.key},
          {"a", "in A, in words", setting.text_a},
          {"b", "in B, in words", setting.text_b}};
}

Records setting_row_records(const SettingRow& row) {
  const auto of = [&](const auto& member) {
    return row.changed ? std::optional(std::invoke(member, *row.changed)) : std::nullopt;
  };
  const auto cause = [](const ChangedStep& step) {
    return step.cause ? std::string(to_text(*step.cause)) : std::string();
  };
  Records records = setting_records(row.setting);
  append(records,
         Records{{"seconds", "of the gap", row.seconds},
                 {"stderr_s", "standard error of that", row.standard_error},
                 {"a_with_it_alone_s", "A with this setting alone as in B", row.alone},
                 {"cause", "whose exposed time that changes most; of the largest rows", of(cause)},
                 {"peak_memory_bytes", "needed then",
                  of([](const ChangedStep& step) { return Bytes{step.needed}; })},
                 {"verdict", "fits, tight or oom, then",
                  of([](const ChangedStep& step) { return to_text(step.fit); })}});
  return records;
}

}  // namespace

SettingRows setting_rows(const std::vector<DifferingSetting>& settings, Seconds a, Seconds b,
                         const MixedReplay& replayed, const SettingOptions& options) {
  SettingRows result;
  result.rest = a - b;
  if (settings.empty()) return result;
  MixedTimes times(settings.size(), a, replayed, options);
  const Screened found = screened(settings, times);
  for (const std::size_t i : found.idle) result.idle.push_back(settings[i]);
  const Players players = players_of(settings, found.acting, times, a.value);
  const auto [plan, values] = study_shapley(
      players.size(), options.most_replays, options.precise.value, options.seed,
      [&](const ShapleyPlan& some) { return worth_of(some, players, settings.size(), times); });
  for (std::size_t i = 0; i < players.size(); ++i) {
    result.rows.push_back(row_of(settings, players[i], values[i], times));
    result.rest = result.rest - result.rows.back().seconds;
  }
  if (std::abs(result.rest.value) <= replay_rounding * std::max(a, b).value) result.rest = {};
  const double sign = a < b ? -1 : 1;
  std::ranges::stable_sort(result.rows, [&](const SettingRow& x, const SettingRow& y) {
    return sign * x.seconds.value > sign * y.seconds.value;
  });
  result.exact = plan.exact();
  result.replays = times.replays();
  return result;
}

std::string to_text(const DifferingSetting& setting) {
  return fmt::format("{}: {} in A, {} in B", setting.key, setting.text_a, setting.text_b);
}

Records settings_records(const SettingRows& settings) {
  return {
      {"rows", "with the rest they add up to the gap", list_of(settings.rows, setting_row_records)},
      {"rest_s", "what no setting says", settings.rest},
      {"without_effect", "differ and change nothing here", list_of(settings.idle, setting_records)},
      {"exact", "all mixtures of the settings were replayed", settings.exact},
      {"replays", "of mixtures of A and B", settings.replays}};
}

}  // namespace stepsim
