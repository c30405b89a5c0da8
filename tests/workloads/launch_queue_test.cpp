// How far the host runs ahead of the device.
#include <algorithm>
#include <map>

#include "tests/support/exactly.hpp"
#include "tests/support/tiny_step.hpp"
#include "tests/support/worker.hpp"

using namespace stepsim;

namespace {

// Operations of the device that are launched and not done, at the worst moment on rank 0. Each is
// launched by the host operation before it.
double most_outstanding(const TinyStep& step) {
  return numbers_from_worker([&] {
           const Replayed replayed = play(step);
           const OpGraph& graph = replayed.program.graph;
           std::vector<std::pair<double, double>> changes;
           double issued = 0;
           for (std::size_t i = 0; i < graph.size(); ++i) {
             const Op& op = graph.ops()[i];
             if (op.rank != 0) continue;
             if (op.kind == OpKind::host) issued = replayed.trace.finish[i];
             if (op.kind != OpKind::compute) continue;
             changes.emplace_back(issued, 1);
             changes.emplace_back(replayed.trace.finish[i], -1);
           }
           std::sort(changes.begin(), changes.end());
           double now = 0, most = 0;
           for (const auto& [time, change] : changes) most = std::max(most, now += change);
           return std::vector<double>{most};
         })
      .front();
}

}  // namespace

TEST_CASE("the host runs ahead by what the launch queue holds", "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero0);
  step.model.layers = 60;
  step.cluster.gpu.gemm.rate.value = {1e10};  // so slow that everything would be launched
  step.cluster.gpu.host_launch.queue.value = {16384};
  const double all = most_outstanding(step);
  step.cluster.gpu.host_launch.queue.value = {1024};  // of which no operation is less than one
  const double few = most_outstanding(step);
  CHECK(all > 1024);
  CHECK(few <= 1024);
  CHECK(few > 1024 / 10.0);
}

TEST_CASE("a model's operators cost its modules' code, those of an update do not", "[workloads]") {
  const auto scaled = [](double model, double loop, bool only_update) {
    TinyStep step = tiny_step(Sharding::zero0);
    step.job.only_update = only_update;
    step.cluster.gpu.gemm.rate.value = {1e20};  // the host is what takes the time
    Stack::HostCosts& host = step.stack.host;
    for (Constant<Seconds>* each : {&host.forward_launch, &host.backward_launch})
      each->value.value *= model;
    host.plain_launch.value.value *= loop;
    return numbers_from_worker([&] { return std::vector<double>{seconds_of(step)}; }).front();
  };
  CHECK_THAT(scaled(100, 1, true), exactly(scaled(1, 1, true)));
  CHECK(scaled(1, 100, true) > scaled(1, 1, true));
  CHECK(scaled(100, 1, false) > 10 * scaled(1, 1, false));
}
