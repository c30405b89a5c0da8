#include "scenarios/read/faults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <random>

#include "scenarios/read/constants.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/units.hpp"
#include "sim/base/whole_file.hpp"

namespace stepsim {
namespace {

// Draws from a normal distribution, cut at three standard deviations. It is written out, as the one
// of the standard library is another in each library.
double deviation(std::mt19937_64& dice) {
  constexpr int throws = 12;
  double sum = -throws / 2.0;
  for (int i = 0; i < throws; ++i) sum += static_cast<double>(dice() >> 11) * 0x1p-53;
  return std::clamp(sum, -3.0, 3.0);
}

// Every rank draws, whether or not a later one does.
void vary(const Table& table, double spread, Cluster& cluster) {
  std::mt19937_64 dice(static_cast<std::uint64_t>(table.integer_or("seed", 1, 0, 1LL << 53)));
  for (double& speed : cluster.speeds) speed /= std::max(0.1, 1 + spread * deviation(dice));
}

void slow_gpus(const Table& table, Cluster& cluster) {
  for (const Table& entry : table.tables("slow_gpus")) {
    const std::int64_t rank = entry.integer("rank", 0, cluster.ranks() - 1);
    const double speed = entry.number("speed", 0.01, 1);
    if (rank >= 0 && rank < cluster.ranks()) cluster.speeds[static_cast<Rank>(rank)] *= speed;
  }
}

std::vector<std::string> link_names(const Cluster& cluster) {
  std::vector<std::string> names;
  for (std::size_t id = 0; id < link_count(cluster); ++id)
    names.push_back(link_of(cluster, LinkId{static_cast<std::uint32_t>(id)}).name);
  return names;
}

std::optional<LinkId> link_named(const Table& entry, const std::vector<std::string>& names) {
  const std::string name = entry.text("link");
  const auto place = std::ranges::find(names, name);
  if (place != names.end()) return LinkId{static_cast<std::uint32_t>(place - names.begin())};
  entry.problem("link", fmt::format("no link \"{}\"{}", name, did_you_mean(name, names)));
  return std::nullopt;
}

void slow_links(const Table& table, Cluster& cluster) {
  const std::vector<std::string> names = link_names(cluster);
  for (const Table& entry : table.tables("slow_links")) {
    const auto link = link_named(entry, names);
    const double share = entry.number("share", 0.001, 1);
    if (link) cluster.slow_links.emplace_back(*link, share);
  }
}

double seconds_of(const Table& entry, std::string_view key, double otherwise) {
  return entry.has(key) ? entry.quantity<Seconds>(key).value : otherwise;
}

// Reads "at", "for", "period" and what changes.
Change change_of(const Table& entry) {
  Change change{.at = seconds_of(entry, "at", 0)};
  change.length = seconds_of(entry, "for", change.length);
  change.period = seconds_of(entry, "period", 0);
  if (entry.has("share")) change.share = entry.number("share", 0.001, 1);
  if (entry.has("latency")) change.latency = entry.quantity<Seconds>("latency").value;
  if (entry.has("period") && change.period <= change.length)
    entry.problem("period", "is how often the event begins, and must be longer than `for`");
  if (entry.has("for") && change.length <= 0) entry.problem("for", "must be above zero");
  return change;
}

void add_loss(const Table& entry, const std::string& what, ClusterEvents& events) {
  for (const std::string_view key : {"for", "period", "share", "latency"})
    if (entry.has(key)) entry.problem(key, "means nothing of what is lost");
  const double at = seconds_of(entry, "at", 0);
  if (events.lost_at && *events.lost_at <= at) return;
  events.lost_at = at;
  events.lost = what;
}

void add_neighbour(const Table& entry, Cluster& cluster) {
  const std::int64_t last = cluster.nodes - 1;
  NodeTraffic traffic{.from = static_cast<std::uint32_t>(entry.integer("from", 0, last)),
                      .to = static_cast<std::uint32_t>(entry.integer("to", 0, last)),
                      .bytes = entry.quantity<Bytes>("bytes"),
                      .at = seconds_of(entry, "at", 0),
                      .period = seconds_of(entry, "period", 0)};
  if (entry.has("bytes") && traffic.bytes.value <= 0) entry.problem("bytes", "must be above zero");
  if (traffic.from == traffic.to || network_route(cluster, traffic.from, traffic.to, 0).empty())
    entry.problem("to", "must be another node, with a network between them");
  else
    cluster.events.neighbours.push_back(traffic);
}

void add_event(const Table& entry, const std::vector<std::string>& links, Cluster& cluster) {
  ClusterEvents& events = cluster.events;
  const bool lost = entry.flag_or("lost", false);
  if (entry.has("from") || entry.has("to")) return add_neighbour(entry, cluster);
  if (entry.has("gpu") == entry.has("link"))
    return entry.problem("", "expected one of link, gpu, or from and to: what the event is of");
  if (!lost && !entry.has("share") && !entry.has("latency"))
    entry.problem("", "changes nothing: expected share, latency or lost");
  if (entry.has("gpu")) {
    const auto rank = static_cast<Rank>(entry.integer("gpu", 0, cluster.ranks() - 1));
    if (entry.has("latency")) entry.problem("latency", "is of a link");
    if (lost) return add_loss(entry, fmt::format("GPU {}", rank), events);
    events.gpus.emplace_back(rank, change_of(entry));
  } else if (const auto link = link_named(entry, links)) {
    if (lost) return add_loss(entry, "link " + links[index(*link)], events);
    events.links.emplace_back(*link, change_of(entry));
  }
}

void read_events(const Table& table, Cluster& cluster) {
  const std::vector<std::string> links = link_names(cluster);
  for (const Table& entry : table.tables("events")) add_event(entry, links, cluster);
}

// Reads "x0.5".
std::optional<double> factor_of(const std::string& value) {
  if (value.size() < 2 || value.front() != 'x' || !is_digit(value[1])) return std::nullopt;
  const auto parsed = parse_quantity(value.substr(1));
  if (!parsed || parsed->dimension != Dimension::ratio || !(parsed->value > 0)) return std::nullopt;
  return parsed->value;
}

std::vector<Setting> read_level(const Table& table) {
  std::vector<Setting> level;
  for (const std::string& key : table.keys()) {
    level.emplace_back(key, table.one_line(key));
    if (names_constant(key) && !factor_of(level.back().second))
      table.problem(key, fmt::format("expected a factor of the constant such as x0.5, found \"{}\"",
                                     level.back().second));
  }
  if (level.empty()) table.problem("", "sets nothing");
  return level;
}

}  // namespace

bool asks_for_faults(const Table& cluster) {
  return std::ranges::any_of(std::array{"vary", "slow_gpus", "slow_links", "events"},
                             [&](const char* key) { return cluster.has(key); });
}

void read_faults(const Table& table, const Variation& variation, Scenario& scenario) {
  Cluster& cluster = scenario.cluster;
  if (scenario.job.method == Method::grpo) {
    for (const std::string_view key : {"vary", "slow_links", "events"})
      if (table.has(key)) table.problem(key, "is not modelled for method: grpo");
    if (!table.has("slow_gpus")) return;
  }
  const bool trains = scenario.job.method != Method::grpo;
  if (table.has("vary") || table.has("slow_gpus")) cluster.speeds.assign(cluster.ranks(), 1);
  if (const auto block = table.table_if("vary"); block && trains)
    vary(*block, variation.gpu_time.value.value, cluster);
  if (table.has("slow_gpus")) slow_gpus(table, cluster);
  if (trains && table.has("slow_links")) slow_links(table, cluster);
  if (trains && table.has("events")) read_events(table, cluster);
}

FaultKind parse_fault_kind(std::string_view text, const std::string& file,
                           const std::string& name) {
  const Document document = parse_document(text, file);
  const Table root = document.root();
  FaultKind kind;
  kind.name = name;
  kind.says = root.text("says");
  kind.prior = root.number("prior", 0, 1);
  if (const auto needs = root.table_if("needs")) {
    kind.gpus = needs->integer_or("gpus", 1, 1, 1 << 20);
    kind.nodes = needs->integer_or("nodes", 1, 1, 1 << 20);
  }
  for (const Table& level : root.tables("levels")) kind.levels.push_back(read_level(level));
  kind.spread = root.number_or("spread", healthy_spread, 0, 10);
  kind.evidence = root.texts_or("evidence");
  kind.test = root.text("test");
  kind.shows = root.text("shows");
  kind.cure = root.text("cure");
  document.finish();
  return kind;
}

std::vector<FaultKind> fault_kinds(const Catalogue& data) {
  return mapped(names_on(data, fault_shelf), [&](const std::string& name) {
    const std::string file = file_of(data, fault_shelf, name);
    return parse_fault_kind(read_text(file), file, name);
  });
}

std::vector<Setting> settings_of_level(const std::vector<Setting>& level,
                                       const Scenario& scenario) {
  std::vector<Setting> settings;
  for (const auto& [key, value] : level) {
    if (!names_constant(key)) {
      settings.emplace_back(key, value);
      continue;
    }
    const auto own = std::ranges::find(scenario.constants, key, &NamedConstant::name);
    if (own == scenario.constants.end()) continue;
    settings.emplace_back(
        key, fmt::format("{} {}", *factor_of(value) * own->value, si_unit(own->dimension)));
  }
  return settings;
}

}  // namespace stepsim
