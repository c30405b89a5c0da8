// What others ask of ways of sharding, and the traffic that these plan.
#include <set>
#include <string_view>

#include "tests/support/catch.hpp"
#include "tests/support/tiny_step.hpp"
#include "workloads/sharding/scheme_facts.hpp"
#include "workloads/sharding/schemes.hpp"
#include "workloads/sharding/step_plans.hpp"

using namespace stepsim;

namespace {

Plans plans_of(const TinyStep& step) {
  return step_plans(step.cluster, needs_of(step.rank()));
}
Plans plans_of(Sharding sharding) {
  return plans_of(tiny_step(sharding, tiny_model(), 2, 4));
}

bool is_planned(const Plans& plans, Plan plan, Collective kind) {
  return !plans[plan].candidates.empty() && plans[plan].kind == kind;
}
bool is_empty(const Plans& plans, Plan plan) {
  return plans[plan].candidates.empty();
}

}  // namespace

TEST_CASE("a plan is what its name says, and there where a scheme needs it", "[workloads]") {
  const Plans all = plans_of(Sharding::zero0), two = plans_of(Sharding::zero2);
  CHECK(is_planned(all, Plan::all_reduce, Collective::all_reduce));
  CHECK(is_empty(all, Plan::all_gather));
  CHECK(is_planned(two, Plan::all_reduce, Collective::all_reduce));
  CHECK(is_planned(two, Plan::all_gather, Collective::all_gather));
  CHECK(is_empty(two, Plan::reduce_scatter));
  for (const Sharding sharding : {Sharding::zero3, Sharding::fsdp}) {
    const Plans plans = plans_of(sharding);
    CHECK(is_planned(plans, Plan::all_gather, Collective::all_gather));
    CHECK(is_planned(plans, Plan::reduce_scatter, Collective::reduce_scatter));
    CHECK(is_empty(plans, Plan::all_reduce));
    CHECK(is_empty(plans, Plan::to_host));
  }
}

TEST_CASE("plans keep the places of their names in the traffic that is written with",
          "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero3, tiny_model(), 2, 4);
  step.strategy.optimizer_place = Offload::cpu;
  Plans plans = plans_of(step);
  const std::size_t gathers = plans[Plan::all_gather].candidates.size();
  const std::size_t copies = plans[Plan::to_device].candidates.size();
  REQUIRE(gathers > 0);
  REQUIRE(copies > 0);
  const std::vector<CollectivePlan> list = plans.take();
  REQUIRE(list.size() == plan_count);
  CHECK(list[index(Plan::all_gather)].candidates.size() == gathers);
  CHECK(list[index(Plan::to_device)].candidates.size() == copies);
}

TEST_CASE("every class of held memory has a name of its own", "[workloads]") {
  std::set<std::string_view> names(held_names.begin(), held_names.end());
  CHECK(names.size() == held_names.size());
  CHECK(!names.contains(""));
  CHECK(to_text(Held::parameters) == "parameters");
  CHECK(to_text(Held::saved_model) == "saved_model");
}

TEST_CASE("memory has streams of its own where a framework gathers beside its kernels",
          "[workloads]") {
  Strategy strategy;
  const auto stream = [&](Held held) {
    return allocating_streams(strategy)[static_cast<std::size_t>(held)];
  };
  strategy.sharding = Sharding::fsdp;
  CHECK(stream(Held::gathered) == 0);  // version 2
  CHECK(stream(Held::own_gradients) == 2);
  CHECK(stream(Held::gradients) == 0);  // that wait for a reduction
  strategy.fsdp.version = 1;
  CHECK(stream(Held::gathered) == 1);
  CHECK(stream(Held::reduce_input) == 2);
  CHECK(stream(Held::own_gradients) == 2);
  CHECK(stream(Held::parameters) == 0);
}

TEST_CASE("the stages that share out more are those that a job could have", "[workloads]") {
  Strategy strategy;
  strategy.sharding = Sharding::zero0;
  CHECK(further_stages(strategy) == std::vector{Sharding::zero1, Sharding::zero2, Sharding::zero3});
  strategy.experts.parallel = 2;
  CHECK(further_stages(strategy) == std::vector{Sharding::zero1, Sharding::zero2});
  strategy.pipeline_parallel.size = 2;
  CHECK(further_stages(strategy) == std::vector{Sharding::zero1});
  strategy.sharding = Sharding::fsdp;
  CHECK(further_stages(strategy).empty());
}

TEST_CASE("stages of a pipeline cannot have a schedule that has no step in two", "[workloads]") {
  static_assert(!StagedSchedule<Zero3::Schedule>);
  static_assert(StagedSchedule<Replicated::Schedule> && StagedSchedule<Distributed::Schedule> &&
                StagedSchedule<FullySharded::Schedule>);
  TinyStep step = tiny_step(Sharding::zero3, tiny_model(), 1, 8);
  step.strategy.pipeline_parallel.size = 2;
  CHECK_THROWS_AS(build_step(step.input(), Folding::automatic), std::logic_error);
}
