// GRPO of models with layers that do not attend: memory, sync and plans.
#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "analysis/studies/grpo/grpo_prediction.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "sim/engine/own/replay.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"
#include "workloads/grpo/sync.hpp"

using namespace stepsim;

namespace {

Scenario job_of(const char* model, std::vector<Setting> settings = {}) {
  std::vector<Setting> all{{"model", model},
                           {"cluster.node", "h200-8"},
                           {"cluster.nodes", "2"},
                           {"job.num_learners_per_node", "[8]"},
                           {"job.vllm_tensor_parallel_size", "2"},
                           {"job.measured_steps", "3"}};
  all.insert(all.end(), settings.begin(), settings.end());
  return load_scenario(source_data(), STEPSIM_SOURCE_DATA "/tests/cli/grpo-small.yaml", all);
}

}  // namespace

TEST_CASE("a run and the question for its memory agree on engines with states", "[grpo]") {
  for (const char* model : {"qwen3.5-9b", "nemotron-nano-9b-v2"}) {
    CAPTURE(model);
    const Scenario scenario = job_of(model);
    const GrpoPrediction p = predict_grpo(scenario);
    const GrpoMemory m = grpo_memory(scenario);
    REQUIRE(p.ran);
    CHECK(p.memory.failure == m.failure);
    CHECK(p.memory.learner.most() == m.learner.most());
    CHECK(p.memory.engine.most() == m.engine.most());
    CHECK(p.memory.host.most() == m.host.most());
    CHECK(p.memory.cache_tokens == m.cache_tokens);
    CHECK(p.most_cached <= m.cache_tokens);
    CHECK(m.full_sequence > static_cast<double>(scenario.grpo->model_length()));
    CHECK(m.cached_sequences == std::floor(m.cache_tokens / m.full_sequence));
    double sum = 0;
    for (const PhaseSpec& phase : phase_specs()) sum += p.phases.*phase.seconds;
    CHECK(sum == Approx(p.step_time.value).epsilon(1e-9));
  }
}

// Layers of several kinds, one after the other: what each adds is what all take at once.
TEST_CASE("a sync of layers of several kinds is that of all of them written out", "[grpo]") {
  for (const char* model : {"qwen3.5-9b", "nemotron-3-nano-30b-a3b", "moonlight-16b-a3b"}) {
    CAPTURE(model);
    const Scenario scenario = job_of(model, {{"job.sync_protocol", "v2"}});
    const Placement placement = place(scenario.cluster, *scenario.grpo);
    const SyncReplay sync = replay_sync(scenario, placement);
    const SyncInput input{.cluster = scenario.cluster,
                          .model = scenario.model,
                          .stack = *scenario.engine,
                          .grpo = *scenario.grpo,
                          .placement = placement,
                          .holders = placement.learners};
    std::vector<std::int64_t> layers(static_cast<std::size_t>(scenario.model.layers));
    std::iota(layers.begin(), layers.end(), 0);
    const SyncProgram program = build_sync(input, layers);
    const Trace trace = replay(program.traffic.folded.platform, program.graph);
    CHECK(sync.cost.gather.value + sync.cost.send.value ==
          Approx(trace.makespan.value).epsilon(1e-6));
  }
}

TEST_CASE("states that leave no room for a response are said", "[grpo]") {
  const Scenario scenario = job_of("qwen3.5-9b", {{"job.vllm_gpu_memory_utilization", "0.0678"}});
  const GrpoMemory m = grpo_memory(scenario);
  REQUIRE(m.failure.has_value());
  CHECK(m.failure->ends_with(
      fmt::format("its cache holds {:.0f} tokens, a response may need {}, "
                  "which with states take the place of {:.0f}",
                  m.cache_tokens, scenario.grpo->model_length(), m.full_sequence)));
  CHECK_FALSE(predict_grpo(scenario).ran);
}
