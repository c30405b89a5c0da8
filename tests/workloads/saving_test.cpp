// What a job writes and reads between steps.
#include "workloads/sharding/saving.hpp"

#include <algorithm>
#include <map>

#include "sim/engine/own/replay.hpp"
#include "tests/support/exactly.hpp"
#include "tests/support/tiny_step.hpp"
#include "tests/support/worker.hpp"
#include "topology/catalog.hpp"

using namespace stepsim;

namespace {

double file_bytes(const OpGraph& graph) {
  double sum = 0;
  for (const Op& op : graph.ops())
    if (op.kind == OpKind::transfer && op.stream == Stream::drive_out) sum += op.bytes.value;
  return sum;
}

double seconds_of_save(const TinyStep& step, Folding folding) {
  return numbers_from_worker([&] {
           const MomentProgram save = build_save(step.input(), folding);
           return std::vector<double>{
               replay(save.traffic.folded.platform, save.graph).makespan.value};
         })
      .front();
}

double seconds_of_resume(const TinyStep& step, double skipped) {
  return numbers_from_worker([&] {
           const MomentProgram resume = build_resume(step.input(), skipped, Folding::automatic);
           return std::vector<double>{
               replay(resume.traffic.folded.platform, resume.graph).makespan.value};
         })
      .front();
}

// The most that the first rank's node holds, and what is left at the end, by tensor class.
std::map<std::string, std::pair<double, double>> held(const OpGraph& graph) {
  std::map<std::string, std::pair<double, double>> result;
  for (const MemoryEffect& effect : graph.memory()) {
    auto& [most, now] = result[graph.names()[index(effect.tensor_class)]];
    if (effect.rank != 0) continue;
    now += effect.bytes;
    most = std::max(most, now);
  }
  return result;
}

}  // namespace

TEST_CASE("files hold what a checkpoint is said to hold, and all of it passes the drives",
          "[workloads]") {
  for (const Variant& variant : tiny_variants(1, 4)) {
    CAPTURE(variant.name);
    const StepInput input = variant.step.input();
    const Checkpoint files = checkpoint_of(rank_part(input));
    CHECK_THAT(file_bytes(build_save(input, Folding::off).graph), exactly(files.bytes()));
    CHECK(files.files >= files.owners);
    for (const auto& [name, most_and_last] : held(build_save(input, Folding::automatic).graph)) {
      CAPTURE(name);
      CHECK(most_and_last.first > 0);
      CHECK(std::abs(most_and_last.second) <= 1e-12 * most_and_last.first);
    }
  }
}

TEST_CASE("what alike ranks save is simulated once", "[workloads]") {
  for (const Variant& variant : tiny_variants(2, 4)) {
    CAPTURE(variant.name);
    CHECK_THAT(seconds_of_save(variant.step, Folding::automatic),
               exactly(seconds_of_save(variant.step, Folding::off)));
  }
}

TEST_CASE("the states are the fp32 copy and two moments, shared out", "[workloads]") {
  const auto sharding = GENERATE(Sharding::zero1, Sharding::zero2, Sharding::zero3);
  const TinyStep step = tiny_step(sharding);
  const double all = elements_of(step).total;
  const Checkpoint files = checkpoint_of(step.rank());
  CHECK_THAT(files.states, exactly(12 * all / 8));
  CHECK(files.owners == 8);
  CHECK_THAT(files.weights, exactly(2 * all));
  CHECK(files.model_states == (sharding == Sharding::zero3 ? 0 : files.weights));
}

TEST_CASE("of adapters beside dealt experts only those of a rank's experts are its own to write",
          "[workloads]") {
  const auto sharding = GENERATE(Sharding::zero1, Sharding::zero2);
  TinyStep step = tiny_step(sharding, tiny_model(8));
  step.strategy.lora = {4, LoraTargets::attention};
  step.strategy.experts.kernel = MoeKernel::grouped;
  const Checkpoint whole = checkpoint_of(step.rank());
  const double attention = whole.weights;
  CHECK_THAT(attention, exactly(2 * step.rank().shares.trained));
  step.strategy.lora.targets = LoraTargets::all;
  const double of_experts = checkpoint_of(step.rank()).weights - attention;
  step.strategy.experts.parallel = 4;
  const auto saved = [&] {
    const Checkpoint files = checkpoint_of(step.rank());
    CHECK_THAT(files.weights, exactly(attention));
    CHECK_THAT(file_bytes(build_save(step.input(), Folding::off).graph), exactly(files.bytes()));
    return files;
  };
  // The experts are saved in one piece and in DeepSpeed's own file.
  CHECK_THAT(saved().experts, exactly(2 * of_experts / 4));
  CHECK(saved().expert_writers == 4);
  step.strategy.lora.targets = LoraTargets::attention;
  CHECK(saved().experts == 0);
  CHECK_THAT(saved().bytes(), WithinRel(whole.bytes(), 1e-9));
  CHECK(saved().files == whole.files);
}

TEST_CASE("a process writes at its own rate, and the drives of a node share theirs",
          "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero2);
  step.job.save.weights = false;
  step.stack.host.file_write.value = {1e6};  // so slow that nothing else counts
  const Checkpoint files = checkpoint_of(step.rank());
  const double alone = files.model_states / 1e6 + files.states / 1e6;
  CHECK_THAT(seconds_of_save(step, Folding::automatic), WithinRel(alone, 0.01));
  // Eight ranks at 1 MB/s each are more than a drive of 2 MB/s takes.
  for (LinkSpec& link : step.cluster.node.links)
    if (link.name == "nvme") link.bandwidth.value = {2e6};
  step.cluster.graph = lay_out(Catalogue(), step.cluster.node);
  CHECK_THAT(seconds_of_save(step, Folding::automatic),
             WithinRel(files.model_states / 1e6 + 8 * files.states / 2e6, 0.01));
}

TEST_CASE("under stage 3 the model is gathered, and is whole in the first rank's host memory",
          "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero3);
  step.job.save.states = false;
  const double all = elements_of(step).total;
  const MomentProgram save = build_save(step.input(), Folding::automatic);
  CHECK_THAT(sum_named(save.graph, OpKind::collective, "gather_module").bytes, exactly(2 * all));
  CHECK_THAT(sum_named(save.graph, OpKind::collective, "share_out").bytes, exactly(2 * all));
  const auto memory = held(save.graph);
  CHECK_THAT(memory.at("saved_model").first * 8, exactly(2 * all));
  CHECK_THAT(memory.at("gathered").first, exactly(2.0 * 2000 * 64));  // the largest module
}

TEST_CASE("adapters are saved out of the whole model, wherever it is put together", "[workloads]") {
  TinyStep step = tiny_step(GENERATE(Sharding::zero3, Sharding::fsdp));
  step.job.save.states = false;
  step.strategy.lora = {4, LoraTargets::attention};
  const double adapters = step.rank().shares.trained, all = step.rank().shares.whole;
  REQUIRE(adapters < 0.5 * all);
  const auto saved = [&](SavedWhole place) {
    step.job.save.gathers = place;
    const OpGraph graph = build_save(step.input(), Folding::automatic).graph;
    CHECK_THAT(file_bytes(build_save(step.input(), Folding::off).graph),
               exactly(checkpoint_of(step.rank()).bytes()));
    const auto memory = held(graph);
    for (const auto& [name, most_and_last] : memory) CHECK(std::abs(most_and_last.second) < 1e-3);
    return std::pair{sum_named(graph, OpKind::collective, "gather_module").bytes,
                     memory.at("saved_model").first};
  };
  const auto [gathered, on_host] = saved(SavedWhole::host);
  CHECK(gathered >= 2 * all);
  CHECK_THAT(on_host * 8, exactly(gathered));  // of eight ranks the first has it
  const auto [again, on_device] = saved(SavedWhole::devices);
  CHECK_THAT(again, exactly(gathered));
  CHECK_THAT(on_device, exactly(gathered));
  CHECK(saved(SavedWhole::trained).first < 0.5 * gathered);
}

TEST_CASE("resuming reads what each rank owns, and makes the batches that were seen again",
          "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero3);
  step.stack.host.file_read.value = {1e6};
  const Checkpoint files = checkpoint_of(step.rank());
  const double read = seconds_of_resume(step, 0);
  CHECK_THAT(read, WithinRel(files.states / 1e6, 0.01));
  CHECK_THAT(seconds_of_resume(step, 1000) - read,
             WithinRel(1000 * step.stack.host.batch.value.value, 1e-9));
}
