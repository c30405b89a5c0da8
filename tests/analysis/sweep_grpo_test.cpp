// A sweep over a GRPO job says what its steps say.
#include "analysis/studies/sweep/sweep.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"

namespace stepsim {
namespace {

SweepTable sweep_of(std::vector<std::string> axes) {
  SweepQuestion question;
  question.data = source_data();
  question.plan.scenario = "grpo-32b-production";
  for (const std::string& axis : axes) question.plan.axes.push_back(parse_axis("--vary", axis));
  return run_sweep(question);
}

double step_time(const SweepRow& row) {
  REQUIRE(row.outcome.feasible);
  return *row.outcome.of("step_time");
}

}  // namespace

TEST_CASE("twelve packed nodes beat twenty with a learner each, and sockets cost most", "[sweep]") {
  const SweepTable table =
      sweep_of({"cluster.node=isambard-ai,isambard-ai-tcp",
                "job.num_learners_per_node=[1],[4,4,4,4]", "cluster.nodes=12,20"});
  REQUIRE(table.rows.size() == 8);
  const double spread_20 = step_time(table.rows[1]), packed_12 = step_time(table.rows[2]);
  CHECK(packed_12 < spread_20);
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(step_time(table.rows[4 + i]) > 2 * step_time(table.rows[i]));
}

TEST_CASE("the phases of a GRPO point add up to its step", "[sweep]") {
  const SweepTable table = sweep_of({"job.num_learners_per_node=[1],[4,4]"});
  for (const SweepRow& row : table.rows) {
    double sum = 0;
    for (const PhaseSpec& phase : phase_specs())
      sum += row.outcome.of("time." + std::string(phase.key)).value_or(0);
    CHECK(sum == Approx(step_time(row)).epsilon(1e-6));
  }
}

TEST_CASE("a GRPO point that cannot start is a row with the reason", "[sweep]") {
  const SweepTable table = sweep_of({"cluster.nodes=4", "job.num_learners_per_node=[1],[4,4,4,4]"});
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[0].outcome.reason.starts_with("a learner's states alone"));
  CHECK(table.rows[1].outcome.reason ==
        "job.vllm_tensor_parallel_size: no node has 2 GPUs left beside its learners");
}

}  // namespace stepsim
