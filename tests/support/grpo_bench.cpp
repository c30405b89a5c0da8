#include "tests/support/grpo_bench.hpp"

#include "scenarios/scenario.hpp"
#include "tests/support/source_data.hpp"
#include "workloads/model/model_catalog.hpp"

namespace stepsim {

GrpoBench grpo_bench() {
  Document engine = open_entry(source_data(), engine_shelf, "vllm");
  GrpoBench bench{load_cluster(source_data(), {.name = "gh200-4"}),
                  load_model(source_data(), "olmo-2-32b"),
                  read_engine_stack(engine.root()),
                  {}};
  Grpo& grpo = bench.grpo;
  grpo.tensor_parallel = 2;
  grpo.memory_utilization = 0.85;
  grpo.protocol = SyncProtocol::v2;
  grpo.async_steps = 2;
  grpo.drop_stale = false;
  grpo.prompts = 16;
  grpo.samples = 4;
  grpo.prompt_limit = grpo.prompt_tokens = 16;
  grpo.response_limit = 4000;
  grpo.pack_length = 4096;
  grpo.lengths = {.kind = LengthKind::fixed, .mean = 1000, .sigma = 0, .list = {}, .seed = 1};
  grpo.measured_steps = 40;
  return bench;
}

GrpoRun GrpoBench::run() const {
  const DecodeModel model_of_decode = decode();
  return run_grpo(
      {.grpo = grpo,
       .decode = model_of_decode,
       .limits = {.cache = cache > 0 ? cache : model_of_decode.capacity(),
                  .sequences = 256,
                  .admitted = grpo.admitted_samples > 0 ? grpo.admitted_samples : 4096,
                  .prefix_caching = grpo.prefix_caching,
                  .block = model_of_decode.block(),
                  .states = model_of_decode.state_blocks()},
       .engines = engines,
       .speeds = speeds,
       .learners = learners,
       .training = [this](std::span<const double>) { return Seconds{training_seconds}; },
       .sync = sync,
       .scorers = scorers,
       .beside = beside,
       .beside_learners = 1,
       .whole_batches = whole_batches,
       .in_step = in_step,
       .failures = failures});
}

double mean_step(const GrpoRun& run, std::size_t from, std::size_t to) {
  return (run.steps[to].end - run.steps[from].end) / static_cast<double>(to - from);
}

}  // namespace stepsim
