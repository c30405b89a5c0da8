// How many plans a second the search for the best split considers on one core, and how much longer
// replaying every one of them would take. `plan_bench` prints all rows.
#include <fmt/format.h>

#include <array>
#include <string>
#include <vector>

#include "analysis/studies/plan/plan_search.hpp"
#include "tests/support/processor_time.hpp"
#include "tests/support/source_data.hpp"

namespace stepsim {
namespace {

constexpr double wanted_rate = 500, wanted_ratio = 10;
constexpr std::size_t sampled = 40;  // plans whose replays are timed, for all

struct Space {
  std::string model, cluster, stack;
  std::int64_t batch;
  std::int64_t sequence;
};

void measure(const Space& which) {
  PlanQuestion question;
  question.data = source_data();
  question.source = "plan";
  question.settings = {{"model", which.model},
                       {"cluster", which.cluster},
                       {"stack", which.stack},
                       {"job.sequence", std::to_string(which.sequence)}};
  question.batch = which.batch;
  PlanAnswer answer;
  const double search = processor_seconds_of([&] {
    answer =
        search_plans(plan_space(question), {.data = question.data, .samples = 0, .workers = 1});
  });
  PlanSpace some = plan_space(question);
  const double all = static_cast<double>(some.plans.size());
  const std::size_t stride = some.plans.size() / sampled + 1;
  std::vector<JobPlan> plans;
  std::vector<SweepValues> points;
  for (std::size_t i = 0; i < some.plans.size(); i += stride) {
    plans.push_back(some.plans[i]);
    points.push_back(some.points[i]);
  }
  some.plans = plans;
  some.points = points;
  const double replays = processor_seconds_of([&] {
    search_plans(some, {.data = question.data, .samples = 0, .prune = false, .workers = 1});
  });
  const double ratio = replays / static_cast<double>(plans.size()) * all / search;
  const double rate = all / search;
  fmt::print("{:18} {:14} {:6.0f} plans {:4} replayed {:7.2f} s {:6.0f} plans/s {:6.0f} x{}\n",
             which.model, which.stack, all, answer.replayed, search, rate, ratio,
             rate < wanted_rate || ratio < wanted_ratio ? "  below what is wanted" : "");
}

}  // namespace
}  // namespace stepsim

int main() {
  for (const stepsim::Space& space :
       {stepsim::Space{"llama-3.1-8b", "{node: superpod-h100, nodes: 8}", "megatron", 512, 8192},
        stepsim::Space{"llama-3.1-8b", "{node: superpod-h100, nodes: 8}", "fsdp2-eager", 512, 8192},
        stepsim::Space{"qwen3-30b-a3b", "{node: superpod-h100, nodes: 8}", "megatron", 512, 4096}})
    stepsim::measure(space);
}
