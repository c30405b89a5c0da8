#include "analysis/studies/sweep/sweep_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"
#include "sim/process/worker.hpp"

namespace stepsim {
namespace {

constexpr std::size_t most_tried = 4096;
constexpr std::string_view expected =
    "--find: expected \"max KEY such that CONDITION\" or \"min KEY such that CONDITION\"";

Vocabulary metric_words() {
  Vocabulary words;
  for (const NamedMetric& metric : all_metrics()) words.names.push_back(metric.name);
  for (const NamedMetric& metric : all_metrics())
    if (metric.name.starts_with("time."))
      words.names.push_back(fmt::format("share.{}", metric.name.substr(5)));
  words.dimension = [names = words.names](std::string_view name) -> std::optional<Dimension> {
    if (const auto metric = find_metric(name)) return all_metrics()[*metric].dimension;
    const bool share = holds(names, name);
    return share ? std::optional(Dimension::ratio) : std::nullopt;
  };
  words.is_text = [](std::string_view name) { return name == "bottleneck"; };
  return words;
}

Fact fact_of(const Outcome& outcome, std::string_view name) {
  if (name == "bottleneck") return outcome.bottleneck.empty() ? Fact() : Fact(outcome.bottleneck);
  const auto value = outcome.of(name);
  return value ? Fact(*value) : Fact();
}

std::string_view next_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(word.size());
  return word;
}

// Trials keep what is known so far, by candidate.
class Trials {
 public:
  Trials(const Catalogue& data, const SweepPlan& plan, const Search& search)
      : data_(data), plan_(plan), search_(search) {}

  void ask(const std::vector<std::size_t>& candidates) {
    std::vector<std::size_t> open;
    for (const std::size_t each : candidates)
      if (!known_.contains(each)) open.push_back(each);
    const auto& choices = plan_.axes.front().choices;
    const auto task = [&](std::size_t i) {
      return evaluate(data_, plan_.scenario, settings_of(plan_, choices[open[i]]));
    };
    const auto done = [&](std::size_t i, Outcome outcome) {
      const bool holds =
          search_.statement.holds([&](std::string_view name) { return fact_of(outcome, name); });
      known_[open[i]] = {open[i], choices[open[i]].front(), holds, std::move(outcome)};
    };
    in_workers(open.size(), usual_workers(), task, done);
  }
  bool holds(std::size_t candidate) const { return known_.at(candidate).holds; }
  // Returns the neighbours among the known ones that differ.
  std::vector<std::pair<std::size_t, std::size_t>> changes() const {
    std::vector<std::pair<std::size_t, std::size_t>> found;
    for (auto at = known_.begin(); at != known_.end() && std::next(at) != known_.end(); ++at)
      if (at->second.holds != std::next(at)->second.holds)
        found.emplace_back(at->first, std::next(at)->first);
    return found;
  }
  std::vector<SearchStep> steps() const {
    return mapped(known_, [](const auto& each) { return each.second; });
  }

 private:
  const Catalogue& data_;
  const SweepPlan& plan_;
  const Search& search_;
  std::map<std::size_t, SearchStep> known_;
};

std::vector<std::size_t> doubling(std::size_t count) {
  std::vector<std::size_t> list;
  for (std::size_t i = 1; i <= count; i *= 2) list.push_back(i - 1);
  list.push_back(count - 1);
  return list;
}

// Tries several at once: every core tries one between the two ends.
void narrow_down(Trials& trials) {
  for (auto [low, high] = trials.changes().front(); high - low > 1;
       std::tie(low, high) = trials.changes().front()) {
    std::vector<std::size_t> between;
    const std::size_t parts = std::min(usual_workers() + 1, high - low);
    for (std::size_t i = 1; i < parts; ++i) between.push_back(low + (high - low) * i / parts);
    trials.ask(between);
  }
}

}  // namespace

Search parse_search(std::string_view text) {
  std::string_view rest = text;
  const std::string_view goal = next_word(rest), key = next_word(rest);
  const bool such = next_word(rest) == "such", that = next_word(rest) == "that";
  if ((goal != "max" && goal != "min") || !such || !that)
    throw UserError(fmt::format("{}, found \"{}\"", expected, text));
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  return {goal == "max", std::string(key), Statement::parse(rest, metric_words(), "--find")};
}

SearchResult run_search(const Catalogue& data, const SweepPlan& plan, const Search& search) {
  if (plan.axes.size() != 1 || plan.keys() != std::vector{search.key})
    throw UserError(
        fmt::format("--find: searches {} alone: --vary may only say its values", search.key));
  const std::size_t count = plan.axes.front().choices.size();
  require_meaning(data, plan.scenario, settings_of(plan, plan.axes.front().choices.front()));
  Trials trials(data, plan, search);
  trials.ask(doubling(count));
  SearchResult result;
  const std::size_t changes = trials.changes().size();
  if (changes == 1) {
    result.method = SearchMethod::bisection;
    narrow_down(trials);
  } else if (changes > 1) {
    if (count > most_tried)
      throw UserError(
          fmt::format("--find: \"{}\" comes and goes, and {} values are too many to "
                      "try: name fewer with --vary {}=...",
                      search.statement.text(), count, search.key));
    result.method = SearchMethod::grid;
    std::vector<std::size_t> all(count);
    for (std::size_t i = 0; i < count; ++i) all[i] = i;
    trials.ask(all);
  }
  result.steps = trials.steps();
  for (std::size_t i = 0; i < result.steps.size(); ++i)
    if (result.steps[i].holds && (search.largest || !result.found)) result.found = i;
  return result;
}

}  // namespace stepsim
