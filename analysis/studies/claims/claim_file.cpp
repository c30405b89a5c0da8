#include "analysis/studies/claims/claim_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "analysis/studies/claims/claim_points.hpp"
#include "scenarios/read/entries.hpp"
#include "scenarios/read/scenario_catalog.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

std::vector<std::string> aliases_of(const Claim& claim) {
  return mapped(claim.scenarios, &ClaimScenario::alias);
}

std::vector<Setting> read_settings(const Table& table) {
  return mapped(table.keys(),
                [&](const std::string& key) { return Setting(key, table.text(key)); });
}

// This keeps what is wrong with a scenario under settings, once it is known: the same ones stand in
// many claims.
using Checked = std::map<std::pair<std::string, std::vector<Setting>>, std::vector<Problem>>;

class ClaimReader {
 public:
  ClaimReader(const Catalogue& data, const std::string& path, const Table& table, Checked& checked)
      : data_(data), path_(path), table_(table), checked_(checked) {}

  Claim read() {
    claim_.id = table_.text("id");
    claim_.text = table_.text("text");
    table_.text_or("source", "");
    table_.text_or("note", "");
    claim_.missing = table_.text_or("missing", "");
    if (!claim_.missing.empty()) return std::move(claim_);
    read_scenarios(table_.table("scenarios"));
    const std::vector<Table> holds = few(table_, "holds", table_.tables("holds"));
    for (const Table& each : holds) read_assertion(each);
    if (holds.empty() && table_.sound()) table_.problem("holds", "asserts nothing");
    if (table_.has("vary"))
      for (const Table& each : few(table_, "vary", table_.tables("vary"))) read_condition(each);
    return std::move(claim_);
  }

 private:
  // Everything in a claim is held against everything else in it.
  template <class Items>
  static Items few(const Table& table, std::string_view key, Items items) {
    constexpr std::size_t most = 1000;
    if (items.size() <= most) return items;
    table.problem(key, fmt::format("{} of them, at most {} are read", items.size(), most));
    return {};
  }

  void read_scenarios(const Table& table) {
    for (const std::string& alias : few(table_, "scenarios", table.keys())) {
      ClaimScenario scenario{alias, "", {}};
      if (alias.find('.') != std::string::npos)
        table.problem(alias, "a scenario's name here may not contain a point");
      if (table.is_mapping(alias)) {
        const Table from = table.table(alias);
        scenario.source = beside(path_, from.text("from"));
        if (const auto set = from.table_if("set")) scenario.settings = read_settings(*set);
        check_source(from, "from", scenario.source);
        check_settings(from, scenario.source, {}, scenario.settings);
      } else {
        scenario.source = beside(path_, table.text(alias));
        check_source(table, alias, scenario.source);
      }
      claim_.scenarios.push_back(std::move(scenario));
    }
    own_ = claim_.scenarios.size();
  }

  void check_source(const Table& table, std::string_view key, const std::string& source) {
    if (source.empty()) return;
    try {
      find_scenario(data_, source);
    } catch (const UserError& error) {
      table.problem(key, error.problems().front().message);
    }
  }

  // A key that the scenario has not, a value that it cannot take: said where the claim says it.
  void check_settings(const Table& table, const std::string& source,
                      const std::vector<Setting>& before,
                      const std::vector<Setting>& settings) const {
    if (settings.empty() || !problems_of(source, before).empty()) return;
    std::vector<Setting> all = before;
    all.insert(all.end(), settings.begin(), settings.end());
    for (const Problem& problem : problems_of(source, all))
      table.problem("set", fmt::format("{}: {}", problem.key, problem.message));
  }

  const std::vector<Problem>& problems_of(const std::string& source,
                                          const std::vector<Setting>& settings) const {
    const auto [known, is_new] = checked_.try_emplace({source, settings});
    if (is_new) try {
        allowed_scenario(data_, source, settings);
      } catch (const UserError& error) {
        known->second = error.problems();
      }
    return known->second;
  }

  std::optional<std::size_t> scenario_called(const Table& table, std::string_view key,
                                             const std::string& alias) {
    const std::vector<std::string> aliases = aliases_of(claim_);
    const auto place = std::find(aliases.begin(), aliases.begin() + static_cast<long>(own_), alias);
    if (place != aliases.begin() + static_cast<long>(own_))
      return static_cast<std::size_t>(place - aliases.begin());
    table.problem(key, fmt::format("no scenario \"{}\" in this claim{}", alias,
                                   did_you_mean(alias, aliases)));
    return std::nullopt;
  }

  // Reads "zero3.step_time".
  std::optional<MetricOf> read_metric(const Table& table, std::string_view key,
                                      const std::string& text) {
    const std::size_t dot = text.find('.');
    if (dot == std::string::npos) {
      table.problem(
          key, fmt::format("expected SCENARIO.METRIC such as a.step_time, found \"{}\"", text));
      return std::nullopt;
    }
    const auto scenario = scenario_called(table, key, text.substr(0, dot));
    const std::string metric = text.substr(dot + 1);
    if (!check_metric(table, key, metric) || !scenario) return std::nullopt;
    return MetricOf{*scenario, metric};
  }

  static bool check_metric(const Table& table, std::string_view key, const std::string& metric) {
    if (claim_dimension(metric)) return true;
    table.problem(
        key, fmt::format("no metric \"{}\"{}", metric, did_you_mean(metric, claim_metric_names())));
    return false;
  }

  void read_assertion(const Table& table) {
    static const std::vector<std::string> kinds{"value",    "ratio",  "closes",
                                                "exponent", "change", "rises"};
    Assertion assertion;
    std::vector<std::string> named;
    for (const std::string& kind : kinds)
      if (table.has(kind)) named.push_back(kind);
    if (named.size() != 1) {
      table.problem(named.empty() ? "value" : named[1],
                    named.empty() ? "expected one of " + one_of(kinds)
                                  : fmt::format("{} stands here already", named.front()));
      return;
    }
    ClaimQuantity& quantity = assertion.quantity;
    quantity.kind =
        static_cast<ClaimQuantity::Kind>(std::ranges::find(kinds, named.front()) - kinds.begin());
    if (quantity.kind == ClaimQuantity::Kind::value)
      read_value(table, assertion);
    else if (quantity.kind == ClaimQuantity::Kind::ratio)
      read_ratio(table, quantity);
    else if (quantity.kind == ClaimQuantity::Kind::closes)
      read_closes(table.table("closes"), quantity);
    else
      read_points(table.table(named.front()), named.front(), quantity);
    if (quantity.metrics.empty()) {  // that is noted, and without its unit the bounds mean nothing
      for (const char* key : {"about", "tolerance", "at_least", "at_most"}) table.has(key);
      return;
    }
    const std::size_t before = table.problems();
    read_bounds(table, assertion);
    if (table.problems() != before) return;
    check_against_others(table, assertion);
    claim_.assertions.push_back(std::move(assertion));
  }

  // All assertions of a claim hold at once, or it does not.
  void check_against_others(const Table& table, const Assertion& assertion) const {
    for (const Assertion& other : claim_.assertions) {
      if (!same(assertion.quantity, other.quantity)) continue;
      const bool above = assertion.low && other.high && *assertion.low > *other.high;
      const bool below = assertion.high && other.low && *assertion.high < *other.low;
      if (!above && !below) continue;
      const double here = above ? *assertion.low : *assertion.high;
      const double there = above ? *other.high : *other.low;
      table.problem(table.has("about") ? "about"
                    : above            ? "at_least"
                                       : "at_most",
                    fmt::format("cannot hold beside another line on {}: {} {} here, {} {} there",
                                assertion.quantity.text, above ? "at least" : "at most",
                                to_text(here, assertion.dimension), above ? "at most" : "at least",
                                to_text(there, assertion.dimension)));
      return;
    }
  }

  static bool same(const ClaimQuantity& a, const ClaimQuantity& b) {
    return a.kind == b.kind && a.text == b.text && a.along == b.along &&
           (!a.along.empty() || a.metrics == b.metrics);
  }

  void read_value(const Table& table, Assertion& assertion) {
    assertion.quantity.text = table.text("value");
    const auto metric = read_metric(table, "value", assertion.quantity.text);
    if (!metric) return;
    assertion.quantity.metrics = {*metric};
    assertion.dimension = *claim_dimension(metric->metric);
  }

  void read_ratio(const Table& table, ClaimQuantity& quantity) {
    const std::vector<std::string> words = few(table, "ratio", table.texts("ratio"));
    if (words.size() != 2) {
      table.problem("ratio", "expected two metrics, [a.step_time, b.step_time]");
      return;
    }
    const auto over = read_metric(table, "ratio", words[0]);
    const auto under = read_metric(table, "ratio", words[1]);
    if (!over || !under) return;
    const Dimension a = *claim_dimension(over->metric), b = *claim_dimension(under->metric);
    if (a != b)
      table.problem(
          "ratio", fmt::format("{} is {}, {} is {}", words[0], describe(a), words[1], describe(b)));
    quantity.metrics = {*over, *under};
    quantity.text = fmt::format("{} / {}", words[0], words[1]);
  }

  void read_closes(const Table& table, ClaimQuantity& quantity) {
    const std::vector<std::string> between = few(table, "between", table.texts("between"));
    if (between.size() != 2 && table.sound())
      table.problem("between", "expected two scenarios, the slower one first");
    for (const std::string& alias : between)
      if (const auto scenario = scenario_called(table, "between", alias))
        quantity.metrics.push_back({*scenario, "step_time"});
    const std::vector<std::string> names(cause_names.begin(), cause_names.end());
    const std::vector<std::string> free = few(table, "free", table.texts("free"));
    for (const std::string& word : free) {
      const auto place = std::ranges::find(names, word);
      if (place == names.end())
        table.problem("free", fmt::format("no cause \"{}\"{}", word, did_you_mean(word, names)));
      else
        quantity.free.add(static_cast<Cause>(place - names.begin()));
    }
    quantity.text = fmt::format("gap closed by free {}", fmt::join(free, ", "));
  }

  // Reads either one scenario over values of a key, or several scenarios against a metric of
  // theirs.
  void read_points(const Table& table, std::string_view kind, ClaimQuantity& quantity) {
    if (table.has("over")) {
      const std::string of = table.text("of"), over = table.text("over");
      const auto metric = read_metric(table, "of", of);
      const std::vector<std::string> values = few(table, "values", table.texts("values"));
      if (values.size() < 2) table.problem("values", "expected at least two values");
      for (const std::string& value : values) add_point(table, metric, over, value, quantity);
      quantity.text = fmt::format("{} of {} over {} {}", kind, of, over, fmt::join(values, ", "));
      return;
    }
    const std::string of = table.text("of"), against = table.text("against");
    const bool known = check_metric(table, "of", of) && check_metric(table, "against", against);
    const std::vector<std::string> among = few(table, "among", table.texts("among"));
    if (among.size() < 2) table.problem("among", "expected at least two scenarios");
    for (const std::string& alias : among)
      if (const auto scenario = scenario_called(table, "among", alias); scenario && known) {
        quantity.metrics.push_back({*scenario, of});
        quantity.against.push_back({*scenario, against});
      }
    quantity.text = fmt::format("{} of {} over {}", kind, of, against);
  }

  void add_point(const Table& table, const std::optional<MetricOf>& metric, const std::string& key,
                 const std::string& value, ClaimQuantity& quantity) {
    const auto number = parse_quantity(value);
    if (!number || number->value <= 0) {
      table.problem("values", fmt::format("expected a number above zero, found \"{}\"", value));
      return;
    }
    if (!metric) return;
    ClaimScenario point = claim_.scenarios[metric->scenario];
    point.alias += fmt::format(" {}={}", key, value);
    point.settings.emplace_back(key, value);
    quantity.metrics.push_back({claim_.scenarios.size(), metric->metric});
    quantity.along.push_back(number->value);
    origins_.emplace_back(claim_.scenarios.size(), metric->scenario);
    claim_.scenarios.push_back(std::move(point));
  }

  void read_bounds(const Table& table, Assertion& assertion) {
    const auto bound = [&](std::string_view key) -> std::optional<double> {
      if (!table.has(key)) return std::nullopt;
      constexpr double most = 1e30;
      if (assertion.dimension == Dimension::ratio) return table.number(key, -most, most);
      const auto [low, high] = table.range(key, assertion.dimension);
      if (low < high) table.problem(key, "expected one value, not a range");
      return low;
    };
    if (const auto about = bound("about")) {
      const double tolerance = table.number_or("tolerance", 0.1, 0, 10);
      assertion.low = *about - tolerance * std::abs(*about);
      assertion.high = *about + tolerance * std::abs(*about);
      for (const char* other : {"at_least", "at_most"})
        if (table.has(other)) table.problem(other, "about stands here already");
      return;
    }
    if (table.has("tolerance")) table.problem("tolerance", "belongs to about, which is missing");
    assertion.low = bound("at_least");
    assertion.high = bound("at_most");
    if (!assertion.low && !assertion.high)
      table.problem("at_least", "expected a bound: at_least, at_most or about");
    if (assertion.low && assertion.high && *assertion.low > *assertion.high)
      table.problem("at_most", fmt::format("is below at_least: {} and {}",
                                           to_text(*assertion.high, assertion.dimension),
                                           to_text(*assertion.low, assertion.dimension)));
  }

  // A change of a scenario is one of the points made of it, too.
  void read_condition(const Table& table) {
    Condition condition;
    condition.name = table.text("name");
    const std::vector<Setting> settings = read_settings(table.table("set"));
    std::vector<std::size_t> changed;
    for (const std::string& alias : few(table, "of", table.texts_or("of")))
      if (const auto scenario = scenario_called(table, "of", alias)) changed.push_back(*scenario);
    if (!table.has("of"))
      for (std::size_t i = 0; i < own_; ++i) changed.push_back(i);
    for (const std::size_t i : changed)
      check_settings(table, claim_.scenarios[i].source, claim_.scenarios[i].settings, settings);
    for (const auto& [point, origin] : origins_)
      if (holds(changed, origin)) changed.push_back(point);
    for (const std::size_t scenario : changed) condition.changes.emplace_back(scenario, settings);
    claim_.conditions.push_back(std::move(condition));
  }

  const Catalogue& data_;
  const std::string& path_;  // of the file
  const Table& table_;
  Checked& checked_;
  Claim claim_;
  std::size_t own_ = 0;  // scenarios that the file names; points come behind them
  std::vector<std::pair<std::size_t, std::size_t>> origins_;  // point, scenario
};

}  // namespace

std::vector<Claim> read_claims(const Catalogue& data, const std::string& path) {
  const Document document = read_document(path);
  const Table root = document.root();
  std::vector<Claim> claims;
  Checked checked;
  std::set<std::string> ids;
  for (const Table& table : root.tables("claims")) {
    claims.push_back(ClaimReader(data, path, table, checked).read());
    const std::string& id = claims.back().id;
    if (!ids.insert(id).second && !id.empty())
      table.problem("id", fmt::format("\"{}\" stands here twice", id));
  }
  if (claims.empty() && root.sound()) root.problem("claims", "no claims stand here");
  document.finish();
  return claims;
}

}  // namespace stepsim
