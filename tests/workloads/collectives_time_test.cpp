// Closed forms of collectives on fabrics where nothing is in the way. S bytes, n ranks, m nodes of
// g, a seconds per step, L to launch, B bytes per second of which the share e is payload.
#include <algorithm>

#include "tests/support/exactly.hpp"
#include "tests/support/timed.hpp"
#include "tests/support/tiny_cluster.hpp"
#include "tests/support/worker.hpp"
#include "workloads/collectives/schedules.hpp"

namespace stepsim {
namespace {

constexpr double S = 3e9;

double seconds_of(const Cluster& cluster, const Question& question) {
  return numbers_from_worker(
             [&] { return play(cluster, question, {S}, Folding::off).seconds.front(); })
      .front();
}

// ceil(log2 n)
double levels(std::uint32_t n) {
  double depth = 0;
  for (std::uint32_t reach = 1; reach < n; reach *= 2) ++depth;
  return depth;
}

// What the busiest rank sends, in buffers: half of one over each tree to each neighbour there.
double sent_by_busiest(const DoubleTree& tree, std::uint32_t n) {
  std::vector<double> sent(n, 0);
  for (const auto& edges : tree.trees)
    for (const TreeEdge& edge : edges) {
      sent[edge.child] += 0.5;
      sent[edge.parent] += 0.5;
    }
  return *std::max_element(sent.begin(), sent.end());
}

// Slow ports, so that between nodes they alone count.
TinyCluster far(std::uint32_t gpus, std::uint32_t nodes) {
  return {.gpus = gpus, .nodes = nodes, .port = 5e9};
}

}  // namespace

TEST_CASE("a ring all-gather or reduce-scatter is n - 1 steps of an nth of the buffer",
          "[workloads]") {
  const auto kind = GENERATE(Collective::all_gather, Collective::reduce_scatter);
  const auto n = GENERATE(2u, 3u, 4u, 8u);
  const TinyCluster t{.gpus = n};
  CAPTURE(to_text(kind), n);
  CHECK_THAT(seconds_of(tiny_cluster(t), {.kind = kind, .algorithm = "ring"}),
             exactly(t.launch + (n - 1) * (t.step + S / n / (t.efficiency * t.link))));
}

TEST_CASE("a ring all-reduce takes the time of a reduce-scatter and an all-gather", "[workloads]") {
  const auto n = GENERATE(2u, 3u, 4u, 8u);
  const TinyCluster t{.gpus = n};
  CHECK_THAT(seconds_of(tiny_cluster(t), {.kind = Collective::all_reduce, .algorithm = "ring"}),
             exactly(t.launch + 2 * (n - 1) * (t.step + S / n / (t.efficiency * t.link))));
}

TEST_CASE("a ring broadcast streams the whole buffer through every link", "[workloads]") {
  const TinyCluster t{.gpus = 5};
  CHECK_THAT(seconds_of(tiny_cluster(t), {.kind = Collective::broadcast, .algorithm = "ring"}),
             exactly(t.launch + 4 * t.step + S / (t.efficiency * t.link)));
}

TEST_CASE("on a full mesh everybody hands everybody an nth in one step", "[workloads]") {
  const auto n = GENERATE(2u, 4u, 8u);
  const TinyCluster t{.fabric = Fabric::mesh, .gpus = n};
  const double part = S / n / (t.efficiency * t.link);
  const auto seconds = [&](Collective kind) {
    return seconds_of(tiny_cluster(t), {.kind = kind, .algorithm = "direct"});
  };
  CAPTURE(n);
  CHECK_THAT(seconds(Collective::all_gather), exactly(t.launch + t.step + part));
  CHECK_THAT(seconds(Collective::reduce_scatter), exactly(t.launch + t.step + part));
  CHECK_THAT(seconds(Collective::all_reduce), exactly(t.launch + 2 * (t.step + part)));
  CHECK_THAT(seconds(Collective::broadcast), exactly(t.launch + 2 * (t.step + part)));
  CHECK_THAT(seconds(Collective::all_to_all),
             exactly(t.launch + (n - 1) * t.step + part / t.exchange));
  CHECK_THAT(seconds(Collective::send_recv), exactly(t.launch + t.step + n * part));
}

TEST_CASE("on a switch an all_to_all sends n - 1 parts through each port", "[workloads]") {
  const auto n = GENERATE(2u, 4u, 8u);
  const TinyCluster t{.gpus = n};
  CHECK_THAT(seconds_of(tiny_cluster(t), {.kind = Collective::all_to_all, .algorithm = "direct"}),
             exactly(t.launch + (n - 1) * (t.step + S / n / (t.efficiency * t.exchange * t.link))));
}

TEST_CASE("a tree climbs and descends log2 n levels and streams the buffer", "[workloads]") {
  const auto n = GENERATE(2u, 3u, 4u, 6u, 8u, 9u, 16u);
  const TinyCluster t{.gpus = n};
  const DoubleTree tree = double_tree(n);
  const double most = sent_by_busiest(tree, n);
  CAPTURE(n, most);
  CHECK(static_cast<double>(tree.depth) == levels(n));
  CHECK(most <= 2);  // a leaf in one tree, two children and a parent in the other
  const double latency = t.launch + 2 * levels(n) * t.step;
  const double stream = most * S / (t.efficiency * t.link);
  const double took =
      seconds_of(tiny_cluster(t), {.kind = Collective::all_reduce, .algorithm = "tree"});
  CHECK(took > (latency + stream) * (1 - 1e-12));
  // An edge that both trees use carries twice what others do; max-min gives it no more than them.
  CHECK(took < latency + 1.1 * stream);
  if (n <= 6) CHECK_THAT(took, exactly(latency + stream));
}

TEST_CASE("in-switch reduction moves 1 + 1/n of the buffer each way", "[workloads]") {
  const auto n = GENERATE(2u, 4u, 8u);
  const TinyCluster t{.gpus = n};
  CHECK_THAT(
      seconds_of(tiny_cluster(t), {.kind = Collective::all_reduce, .algorithm = "nvls"}),
      exactly(t.launch + 2 * t.nvls_step + (1 + 1.0 / n) * S / (t.nvls_efficiency * t.link)));
}

TEST_CASE("rings across nodes share the bytes among the rails", "[workloads]") {
  const auto m = GENERATE(2u, 3u, 4u);
  const std::uint32_t g = 4, n = m * g;
  const TinyCluster t = far(g, m);
  CAPTURE(m);
  CHECK_THAT(seconds_of(tiny_cluster(t), {.kind = Collective::all_gather, .algorithm = "ring"}),
             exactly(t.launch + t.network_launch + (n - 1 - m) * t.step + m * t.network_step +
                     S * (n - 1) / n / g / (t.network_efficiency * t.port)));
}

// What a thread of its own adds to the time of S bytes over ports.
double added_by_thread(std::uint32_t nodes, Collective kind, double thread) {
  const TinyCluster plain = far(1, nodes);
  TinyCluster threaded = plain;
  threaded.thread = thread;
  const Question question{.kind = kind, .algorithm = "ring"};
  return seconds_of(tiny_cluster(threaded), question) - seconds_of(tiny_cluster(plain), question);
}

TEST_CASE("one thread that sends and receives halves a gather's rate, not a root's",
          "[workloads]") {
  const TinyCluster t = far(1, 2);
  const double thread = t.port / 8;
  const auto seconds = [&](double bytes, double rate) {
    return bytes / (t.network_efficiency * rate);
  };
  // Every rank passes on all but one part, and takes in as much.
  for (const std::uint32_t n : {2u, 4u}) {
    const double part = S * (n - 1) / n;
    CHECK_THAT(added_by_thread(n, Collective::all_gather, thread),
               exactly(seconds(2 * part, thread) - seconds(part, t.port)));
  }
  // Of two ranks one sends and the other receives; of more, those between do both.
  CHECK_THAT(added_by_thread(2, Collective::broadcast, thread),
             exactly(seconds(S, thread) - seconds(S, t.port)));
  CHECK_THAT(added_by_thread(3, Collective::broadcast, thread),
             exactly(seconds(2 * S, thread) - seconds(S, t.port)));
  CHECK(added_by_thread(4, Collective::all_gather, 2 * t.port) == 0);
}

TEST_CASE("a hierarchical all-reduce takes the sum of its three phases", "[workloads]") {
  const auto fabric = GENERATE(Fabric::in_switch, Fabric::mesh);
  const auto m = GENERATE(2u, 3u, 4u);
  const std::uint32_t g = 4;
  TinyCluster t = far(g, m);
  t.fabric = fabric;
  // A switch is crossed by a ring of g - 1 steps, a mesh in one.
  const double part = S / g / (t.efficiency * t.link);
  const double inside = fabric == Fabric::mesh ? t.step + part : (g - 1) * (t.step + part);
  const double between =
      2 * (m - 1) * (t.network_step + S / g / m / (t.network_efficiency * t.port));
  CAPTURE(m, fabric == Fabric::mesh);
  CHECK_THAT(
      seconds_of(tiny_cluster(t), {.kind = Collective::all_reduce, .algorithm = "hierarchical"}),
      exactly(t.launch + t.network_launch + 2 * inside + between));
}

TEST_CASE("a tree across nodes climbs between the nodes and chains inside", "[workloads]") {
  const std::uint32_t g = 4, m = 2;
  const TinyCluster t = far(g, m);
  // Two nodes: each of the two trees is one edge, so each rail sends half of its bytes both ways.
  const double between = S / g / (t.network_efficiency * t.port);
  CHECK_THAT(
      seconds_of(tiny_cluster(t), {.kind = Collective::all_reduce, .algorithm = "tree"}),
      exactly(t.launch + t.network_launch + 2 * (g - 1) * t.step + 2 * t.network_step + between));
}

// Else a step on thousands of nodes would be simulated node by node.
TEST_CASE("no place of a tree is told from another, however many nodes there are", "[workloads]") {
  for (const std::uint32_t nodes : {2U, 3U, 8U, 31U, 100U}) {
    const TinyCluster t = far(4, nodes);
    const Cluster cluster = tiny_cluster(t);
    const CollectivePlan plan = plan_collective(cluster, Collective::all_reduce,
                                                {all_ranks(cluster)}, {.algorithm = "tree"});
    std::vector<Family> families;
    for (const Candidate& each : plan.candidates) families.push_back(each.patterns);
    CAPTURE(nodes);
    CHECK(fold(machinery_of(cluster), families, Folding::automatic).lane_sizes.size() <= t.gpus);
    // Alone it takes as long as the busiest place of the real tree needs.
    const DoubleTree tree = double_tree(nodes);
    const double between =
        sent_by_busiest(tree, nodes) * S / t.gpus / (t.network_efficiency * t.port);
    const double depth = static_cast<double>(tree.depth);
    CHECK_THAT(seconds_of(cluster, {.kind = Collective::all_reduce, .algorithm = "tree"}),
               exactly(t.launch + t.network_launch + 2 * (t.gpus - 1) * t.step +
                       2 * depth * t.network_step + between));
  }
}

TEST_CASE("flows as one or step by step take the same time", "[workloads]") {
  const auto [algorithm, fabric] =
      GENERATE(table<std::string, Fabric>({{"ring", Fabric::in_switch},
                                           {"direct", Fabric::mesh},
                                           {"direct", Fabric::in_switch},
                                           {"hierarchical", Fabric::in_switch},
                                           {"hierarchical", Fabric::mesh}}));
  const auto kind =
      GENERATE(Collective::all_gather, Collective::reduce_scatter, Collective::all_reduce);
  const auto nodes = GENERATE(1u, 2u, 3u);
  if (algorithm == "hierarchical" && nodes == 1) return;
  TinyCluster t = far(4, nodes);
  t.fabric = fabric;
  const Cluster cluster = tiny_cluster(t);
  CAPTURE(algorithm, to_text(kind), nodes);
  const double whole = seconds_of(cluster, {.kind = kind, .algorithm = algorithm});
  const double steps =
      seconds_of(cluster, {.kind = kind, .algorithm = algorithm, .detail = Detail::stepped});
  CHECK_THAT(steps, WithinRel(whole, 1e-9));
}

TEST_CASE("an exchange takes as long as its fullest link", "[workloads]") {
  const std::uint32_t n = 4;
  const std::vector<std::vector<double>> matrix{
      {0, 0.5, 0.1, 0}, {0.1, 0, 0.2, 0.3}, {0.2, 0.2, 0, 0.2}, {0, 0, 0.6, 0.9}};
  const double fullest = 0.6;  // 3 to 2, since what stays at home travels no link
  const TinyCluster t{.fabric = Fabric::mesh, .gpus = n};
  const Cluster cluster = tiny_cluster(t);
  const std::vector<Rank> group = all_ranks(cluster);
  CollectivePlan plan{.kind = Collective::all_to_all, .groups = {group}, .candidates = {}};
  plan.candidates.push_back({.algorithm = "exchange",
                             .protocol = "simple",
                             .patterns = {make_pattern(cluster, exchange(cluster, group, matrix),
                                                       group, "exchange", "simple")}});
  CHECK_THAT(
      play(cluster, std::vector{plan}, {S}).seconds[0][0],
      exactly(t.launch + (n - 1) * t.step + fullest * S / (t.efficiency * t.exchange * t.link)));
}

TEST_CASE("an exchange in which all send to one is bound by his port", "[workloads]") {
  const std::uint32_t n = 4;
  const TinyCluster t{.gpus = n};
  const Cluster cluster = tiny_cluster(t);
  const std::vector<Rank> group = all_ranks(cluster);
  std::vector<std::vector<double>> matrix(n, std::vector<double>(n, 0));
  for (std::uint32_t from = 1; from < n; ++from) matrix[from][0] = 1;
  CollectivePlan plan{.kind = Collective::all_to_all, .groups = {group}, .candidates = {}};
  plan.candidates.push_back({.algorithm = "exchange",
                             .protocol = "simple",
                             .patterns = {make_pattern(cluster, exchange(cluster, group, matrix),
                                                       group, "exchange", "simple")}});
  CHECK_THAT(play(cluster, std::vector{plan}, {S}).seconds[0][0],
             exactly(t.launch + (n - 1) * (t.step + S / (t.efficiency * t.exchange * t.link))));
}

}  // namespace stepsim
