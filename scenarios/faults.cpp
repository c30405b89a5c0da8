#include "scenarios/faults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>

namespace stepsim {
namespace {

// Of a normal distribution, cut at three standard deviations. Written out, as the one of the
// standard library is another in each library.
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

void slow_links(const Table& table, Cluster& cluster) {
  std::vector<std::string> names;
  for (std::size_t id = 0; id < link_count(cluster); ++id)
    names.push_back(link_of(cluster, LinkId{static_cast<std::uint32_t>(id)}).name);
  for (const Table& entry : table.tables("slow_links")) {
    const std::string name = entry.text("link");
    const double share = entry.number("share", 0.001, 1);
    const auto place = std::ranges::find(names, name);
    if (place == names.end())
      entry.problem("link", fmt::format("no link \"{}\"{}", name, did_you_mean(name, names)));
    else
      cluster.slow_links.emplace_back(LinkId{static_cast<std::uint32_t>(place - names.begin())},
                                      share);
  }
}

}  // namespace

bool asks_for_faults(const Table& cluster) {
  const bool gpus = cluster.has("slow_gpus"), links = cluster.has("slow_links");
  return cluster.has("vary") || gpus || links;
}

void read_faults(const Table& table, const Variation& variation, Scenario& scenario) {
  Cluster& cluster = scenario.cluster;
  if (scenario.job.method == Method::grpo) {
    for (const std::string_view key : {"vary", "slow_links"})
      if (table.has(key)) table.problem(key, "is not modelled for method: grpo");
    if (!table.has("slow_gpus")) return;
  }
  cluster.speeds.assign(cluster.ranks(), 1);
  const bool trains = scenario.job.method != Method::grpo;
  if (const auto block = table.table_if("vary"); block && trains)
    vary(*block, variation.gpu_time.value.value, cluster);
  if (table.has("slow_gpus")) slow_gpus(table, cluster);
  if (trains && table.has("slow_links")) slow_links(table, cluster);
}

}  // namespace stepsim
