// What a replay costs. `replay_bench` prints all rows, each from a process of its own.
// `replay_bench ROW` runs one row in this process, so that callgrind or perf see it alone.
#include <fmt/format.h>
#include <sys/resource.h>

#include <array>
#include <cstdio>
#include <ctime>
#include <numeric>
#include <string_view>

#include "sim/engine/own/replay.hpp"
#include "sim/process/worker.hpp"
#include "tests/support/source_data.hpp"
#include "topology/catalog.hpp"
#include "workloads/program/program_builder.hpp"

namespace stepsim {
namespace {

struct Measured {
  double operations = 0;  // that the engine handled: computations, flows and timers
  double seconds = 0;     // of processor time, for what the row is about
};

// Of the processor, so that a busy machine changes nothing.
double clock_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

double peak_mebibytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

std::vector<Rank> all_ranks(const Cluster& cluster) {
  std::vector<Rank> ranks(cluster.ranks());
  std::iota(ranks.begin(), ranks.end(), Rank{0});
  return ranks;
}

Cluster h100(std::uint32_t nodes) {
  return load_cluster(source_data(), {.name = "superpod-h100", .nodes = nodes});
}

// Layers of a training step in small: on every rank a launch, a kernel, and a gather by all of them
// for the next kernel, until there are that many operations. No two ranks are equally fast, so no
// two events fall together.
OpGraph layers(const Traffic& traffic, double operations) {
  ProgramBuilder builder(traffic);
  const Pattern& ring = traffic.folded.families.front().front();
  const double per_layer =
      2.0 * builder.lanes() + 1 + static_cast<double>(ring.rounds.front().flows.size());
  for (double done = 0; done < operations; done += per_layer) {
    builder.everywhere({.kind = OpKind::host, .stream = Stream::host, .seconds = {9e-6}});
    builder.wait(Stream::compute, Stream::host);
    builder.wait(Stream::compute, Stream::gather);
    builder.collective(0, {.kind = OpKind::collective, .stream = Stream::gather, .bytes = {64e6}},
                       Stream::host);
    for (Rank rank = 0; rank < builder.lanes(); ++rank)
      builder.add({.kind = OpKind::compute,
                   .stream = Stream::compute,
                   .rank = rank,
                   .seconds = {300e-6 + 1e-6 * rank}});
  }
  return builder.take();
}

Traffic ring_gather(const Cluster& cluster, Folding folding) {
  return make_traffic(machinery_of(cluster),
                      {plan_collective(cluster, Collective::all_gather, {all_ranks(cluster)},
                                       {.algorithm = "ring", .protocol = "simple"})},
                      folding);
}

Measured replay_layers(std::uint32_t nodes, double operations) {
  const Cluster cluster = h100(nodes);
  const Traffic traffic = ring_gather(cluster, Folding::off);
  const OpGraph graph = layers(traffic, operations);
  const double begin = clock_seconds();
  const Trace trace = replay(traffic.folded.platform, graph);
  return {static_cast<double>(trace.activities), clock_seconds() - begin};
}

Measured build_graph() {
  const Cluster cluster = h100(1);
  const Traffic traffic = ring_gather(cluster, Folding::off);
  const double begin = clock_seconds();
  const OpGraph graph = layers(traffic, 3e6);
  return {static_cast<double>(graph.size()), clock_seconds() - begin};
}

// All of a small question: load, plan, fold, replay.
Measured whole(std::uint32_t nodes, Collective kind, std::string_view algorithm, Folding folding) {
  const double begin = clock_seconds();
  const Cluster cluster = h100(nodes);
  const Traffic traffic =
      make_traffic(machinery_of(cluster),
                   {plan_collective(cluster, kind, {all_ranks(cluster)},
                                    {.algorithm = std::string(algorithm), .protocol = "simple"})},
                   folding);
  ProgramBuilder builder(traffic);
  builder.collective(0, {.kind = OpKind::collective, .stream = Stream::gather, .bytes = {4e9}},
                     Stream::gather);
  const OpGraph graph = builder.take();
  const Trace trace = replay(traffic.folded.platform, graph);
  return {static_cast<double>(trace.activities), clock_seconds() - begin};
}

struct Row {
  std::string_view name;
  std::string_view title;
  Measured (*measure)();
};
constexpr std::array rows{
    Row{"replay-8", "replay, 8 ranks, unfolded", [] { return replay_layers(1, 20e3); }},
    Row{"replay-64", "replay, 64 ranks, unfolded", [] { return replay_layers(8, 20e3); }},
    Row{"replay-million", "replay, 8 ranks, a million operations",
        [] { return replay_layers(1, 1e6); }},
    Row{"build", "building a graph", build_graph},
    Row{"ring-1024", "ring all_gather of 1,024 ranks, unfolded, whole",
        [] { return whole(128, Collective::all_gather, "ring", Folding::off); }},
    Row{"exchange-128", "all_to_all of 128 ranks, 16,256 flows at once, whole",
        [] { return whole(16, Collective::all_to_all, "direct", Folding::off); }},
    Row{"folded-16384", "hierarchical all_reduce of 16,384 ranks, folded, whole",
        [] { return whole(2048, Collective::all_reduce, "hierarchical", Folding::automatic); }},
};

std::string line(const Row& row) {
  const Measured measured = row.measure();
  return fmt::format("{:<16}{:<56}{:>10.0f}{:>9.3f}{:>9.2f}{:>8.0f}\n", row.name, row.title,
                     measured.operations, measured.seconds,
                     1e6 * measured.seconds / measured.operations, peak_mebibytes());
}

int run(std::string_view only) {
  fmt::print("{:<16}{:<56}{:>10}{:>9}{:>9}{:>8}\n", "row", "", "ops", "seconds", "us/op", "MiB");
  bool known = only.empty();
  std::fflush(stdout);  // or each worker prints it again
  for (const Row& row : rows) {
    if (only.empty())
      fmt::print("{}", in_worker([&] { return line(row); }));
    else if (row.name == only)
      fmt::print("{}", line(row));
    known = known || row.name == only;
    std::fflush(stdout);
  }
  if (!known) fmt::print("no row \"{}\"\n", only);
  return known ? 0 : 2;
}

}  // namespace
}  // namespace stepsim

int main(int argc, char** argv) {
  return stepsim::run(argc > 1 ? argv[1] : "");
}
