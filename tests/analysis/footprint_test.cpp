// What fits, and what would make it fit.
#include "analysis/studies/predict/footprint.hpp"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

#include "analysis/studies/outcome/interval.hpp"
#include "analysis/studies/predict/rank_memory.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "scenarios/read/scenario_reader.hpp"
#include "sim/base/lists.hpp"
#include "sim/process/worker.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"

namespace stepsim {
namespace {

const Catalogue& data = source_data();

Scenario seed(const std::string& name, std::vector<Setting> settings = {}) {
  return load_scenario(data, name, settings);
}

}  // namespace

TEST_CASE("a run that fits says so, and its classes add up to what it needs", "[analysis]") {
  const Footprint needs = footprint(seed("llama32-3b-sft-zero3"));
  double sum = needs.slack + needs.library;
  for (const auto& [name, bytes] : needs.device.peak.classes) sum += bytes;
  CHECK(needs.fit() == Fit::fits);
  CHECK(std::abs(sum - needs.needed()) < 1e-9 * needs.needed());
}

TEST_CASE("the request that failed in a published log is the one that fails", "[analysis]") {
  // "Tried to allocate 12.38 GiB", with 62.03 GiB allocated.
  const Footprint needs = footprint(seed("mpt7b-zero2-oom"));
  REQUIRE(needs.device.failed);
  CHECK(needs.device.failed->moment == "optimizer");
  CHECK(needs.device.failed->tensor_class == "fp32_gradient");
  CHECK(fmt::format("{:.2f}", needs.device.failed->bytes / 0x1p30) == "12.38");
  CHECK(std::abs(needs.device.failed->before / 0x1p30 - 62.03) < 0.2);
}

TEST_CASE("a model that stands whole on its devices first leaves no room for fp32 copies",
          "[analysis]") {
  const Footprint needs = footprint(seed("openrlhf-qwen3-30b-2x96-zero3-init-oom"));
  REQUIRE(needs.device.failed);
  CHECK(needs.device.failed->moment == "fp32 copies");
  CHECK(needs.device.failed->tensor_class == "master_weights");
  CHECK(needs.device.moments.front().first == "model load");
  CHECK(std::abs(needs.device.moments.front().second / 0x1p30 - 57) < 0.5);  // read: 57 to 58
}

TEST_CASE("where set-up alone is too large nothing fits, and that is known without a step",
          "[analysis]") {
  CHECK_FALSE(setup_fits(seed("openrlhf-qwen3-30b-2x96-zero3-init-oom")));
  CHECK(setup_fits(seed("mpt7b-zero2-oom")));  // it fails in the update
  const std::vector<Setting> whole{{"strategy.zero", "0"}};
  CHECK_FALSE(setup_fits(seed("qwen3-30b-sft-zero3", whole)));
  CHECK(footprint(seed("qwen3-30b-sft-zero3", whole)).fit() == Fit::oom);
  for (const char* model : {"llama-3.1-70b", "llama-3.1-8b"}) {
    CAPTURE(model);
    const Scenario stages = parse_scenario(
        data,
        fmt::format("name: stages\nmodel: {}\nstack: megatron\ncluster: {{node: h100-8}}\n"
                    "job: {{sequence: 512}}\n"
                    "strategy: {{zero: 1, pipeline_parallel: {{size: 2}}}}\n",
                    model),
        "stages.yaml");
    CHECK(setup_fits(stages) == (footprint(stages).fit() != Fit::oom));
  }
}

TEST_CASE("memory that is no number is no verdict", "[analysis]") {
  Footprint needs;
  needs.margin.value = std::nan("");
  CHECK_THROWS_AS(needs.fit(), std::logic_error);
}

TEST_CASE("a stage without a matrix for adapters has nothing to update", "[analysis]") {
  const Scenario hybrid = parse_scenario(
      data,
      "name: mixers below, attention above\nstack: megatron\ncluster: {node: h100-2}\n"
      "model: {architectures: [GraniteMoeHybridForCausalLM], num_hidden_layers: 2, hidden_size: "
      "768, "
      "shared_intermediate_size: 2048, num_local_experts: 0, num_attention_heads: 12, "
      "num_key_value_heads: 4, vocab_size: 100352, max_position_embeddings: 32768, "
      "tie_word_embeddings: false, position_embedding_type: nope, "
      "layer_types: [mamba, attention], mamba_n_heads: 48, mamba_d_head: 32, mamba_d_state: 128, "
      "mamba_n_groups: 1, mamba_d_conv: 4, mamba_expand: 2, mamba_chunk_size: 256, "
      "mamba_conv_bias: true, mamba_proj_bias: false}\n"
      "job: {sequence: 128}\n"
      "strategy: {zero: 1, lora: {rank: 8, targets: attention}, pipeline_parallel: {size: 2}}\n",
      "hybrid.yaml");
  CHECK(footprint(hybrid).fit() == Fit::fits);
}

TEST_CASE("below stage 3 set-up takes whole buffers, and the allocator holds nothing beyond them",
          "[analysis]") {
  const Footprint needs = footprint(seed("qwen3-30b-dpo-zero2-offload"));
  CHECK(needs.device.peak.phase == "flattening");
  CHECK(needs.slack == 0);
  CHECK(footprint(seed("qwen3-30b-sft-zero3")).slack > 0);
}

TEST_CASE("the verdict has a margin that its constants widen", "[analysis]") {
  const Footprint needs = footprint(seed("mpt7b-zero2-oom"));
  CHECK(needs.margin.low < needs.margin.value);
  CHECK(needs.margin.value < needs.margin.high);
  CHECK(std::abs(needs.margin.value - (needs.capacity - needs.needed())) < 1);
}

TEST_CASE("a verdict is a chance, even where what is stated just fits", "[analysis]") {
  Footprint needs;
  needs.capacity = 80e9;
  needs.scatter = 0.05;
  const auto with_left = [&](double bytes) {
    needs.margin = {bytes, bytes - 2e9, bytes + 1e9};
    return needs;
  };
  CHECK(std::abs(with_left(0).chance() - 0.5) < 1e-9);
  CHECK(with_left(0).fit() == Fit::tight);
  CHECK(with_left(-1e6).fit() == Fit::oom);
  CHECK(with_left(20e9).fit() == Fit::fits);
  CHECK(with_left(5e9).chance() < with_left(6e9).chance());
  CHECK(with_left(-5e9).chance() > with_left(-6e9).chance());
  // Doubt about the allocator comes on top of how far runs lie from what is predicted.
  const double doubted = with_left(5e9).chance();
  needs.margin.low = needs.margin.value;
  CHECK(needs.chance() > doubted);
  needs.scatter = 0.15;
  CHECK(needs.chance() < doubted);
  // The fuller of GPU and host decides, and drives have no doubt.
  needs.host_capacity = 100e9;
  needs.host.peak.bytes = 99e9;
  CHECK(needs.chance() == std::min(needs.chance_on_device(), needs.chance_on_host()));
  needs.disk_capacity = 1;
  needs.disk = 2;
  CHECK(needs.chance() == 0);
}

TEST_CASE("the largest micro-batch that is sure to fit is smaller than one that may",
          "[analysis]") {
  Scenario scenario = seed("llama32-3b-sft-zero3");
  const std::int64_t safe = largest_micro_batch(scenario, fits_from);
  CHECK(safe < largest_micro_batch(scenario, tight_from));
  scenario.job.micro_batch = safe;
  CHECK(footprint(scenario).fit() == Fit::fits);
  scenario.job.micro_batch = safe + 1;
  CHECK(footprint(scenario).fit() != Fit::fits);
}

TEST_CASE("a node with little memory cannot take what is offloaded", "[analysis]") {
  Scenario scenario = seed("mpt7b-zero3-offload");
  const Footprint roomy = footprint(scenario);
  CHECK(roomy.fit() == Fit::fits);
  // 4 for the copy, 8 for the moments, 4 and 2 for gradients, 2 for parameters.
  const double parameters = static_cast<double>(count_parameters(scenario.model).total());
  CHECK(std::abs(roomy.pinned + roomy.pageable - 20 * parameters) < 1e-9 * parameters);
  scenario.cluster.node.host.dram_capacity.value = Bytes{16 * parameters};
  const Footprint narrow = footprint(scenario);
  CHECK(narrow.fit() == Fit::oom);
  REQUIRE(narrow.host.failed);
  CHECK(!narrow.device.failed);
}

TEST_CASE("drives that are too small do not hold what is offloaded", "[analysis]") {
  Scenario scenario = seed("phi4-14b-sft-zero3", {{"strategy.optimizer", "adamw"},
                                                  {"strategy.offload.optimizer", "nvme"}});
  const Footprint roomy = footprint(scenario);
  CHECK(roomy.disk > 100e9);
  CHECK(roomy.fit() == Fit::fits);
  scenario.cluster.node.host.drive_capacity->value = Bytes{roomy.disk - 1};
  CHECK(footprint(scenario).fit() == Fit::oom);
  scenario.cluster.node.host.drive_capacity.reset();  // not known: nothing to hold it against
  CHECK(footprint(scenario).fit() == Fit::fits);
}

TEST_CASE("a device's own tool sees the context, and what is kept for other streams",
          "[analysis]") {
  Scenario scenario = seed("mpt7b-zero3-offload");
  Footprint apart = footprint(scenario);
  apart.reserved = reserved_in_order(scenario, apart);
  CHECK(apart.context == 0.9 * 0x1p30);
  CHECK(apart.reserved > apart.device.peak.bytes);
  CHECK(apart.shown() == apart.reserved + apart.library + apart.context);
  // On one stream everything is handed on.
  scenario.strategy.zero.overlap_comm = false;
  CHECK(reserved_in_order(scenario, footprint(scenario)) < apart.reserved);
  // Segments that expand are whole again when they are free.
  scenario.strategy.expandable_segments = true;
  const Footprint whole = footprint(scenario);
  CHECK(reserved_in_order(scenario, whole) < 1.02 * whole.device.peak.bytes + 0x1p27);
  // Idle memory is given back before a request fails, so it decides nothing.
  CHECK(std::abs(apart.margin.value - (apart.capacity - apart.needed())) < 1);
  // Nobody sees more than there is.
  const Scenario too_large = seed("mpt7b-zero2-oom");
  Footprint full = footprint(too_large);
  full.reserved = reserved_in_order(too_large, full);
  CHECK(full.shown() <= full.capacity + full.context);
}

// Many micro-batches are laid out as a few of them, which ask for the same again and again.
TEST_CASE("what the allocator reserves does not hang on how many micro-batches there are",
          "[analysis]") {
  const auto reserved = [](const char* count) {
    const Scenario scenario = seed("llama32-3b-sft-zero3", {{"job.gradient_accumulation", count}});
    return reserved_in_order(scenario, footprint(scenario));
  };
  CHECK(reserved("12") == reserved("200"));
}

TEST_CASE("rows of many lengths leave the allocator with more than it uses", "[analysis]") {
  const std::vector<Setting> rows{{"job.padding", "longest"},
                                  {"job.sequence", "4096"},
                                  {"job.fill", "null"},
                                  {"job.document_length.mean", "2000"}};
  const auto reserved = [&](const std::vector<Setting>& more) {
    std::vector<Setting> settings = rows;
    append(settings, more);
    const Scenario scenario = seed("llama32-3b-dpo-zero3", settings);
    const Footprint needs = footprint(scenario);
    return reserved_in_order(scenario, needs) / needs.device.peak.bytes;
  };
  const Setting many{"job.document_length.spread", "0.9"};
  const double alike = reserved({{"job.document_length.spread", "0"}});
  CHECK(reserved({many}) > 1.15 * alike);
  // Segments that expand take what is there from each other.
  CHECK(reserved({many, {"strategy.expandable_segments", "true"}}) < 0.95 * reserved({many}));
}

// A first step leaves room between gradients, and the optimizer's states come into it: the second
// step finds none for its largest requests.
TEST_CASE("states that are made in the first update are in the way of the second step",
          "[analysis]") {
  const Scenario plain = seed("llama32-3b-sft-zero3",
                              {{"job.micro_batch", "4"}, {"strategy.cross_entropy", "logits"}});
  const Footprint needs = footprint(plain);
  CHECK(reserved_in_order(plain, needs) > 1.05 * needs.device.peak.bytes);
}

TEST_CASE("the same question has the same interval, and more doubt a wider one", "[analysis]") {
  const IntervalQuestion question{
      .data = data, .scenario = "llama32-3b-sft-zero3", .settings = {}, .samples = 6};
  const Interval first = interval_of(question), second = interval_of(question);
  CHECK(first.step_time.low == second.step_time.low);
  CHECK(first.step_time.high == second.step_time.high);
  CHECK(first.step_time.low < first.step_time.high);
  CHECK(first.throughput.low < first.throughput.high);
  CHECK(first.memory.low < first.memory.high);
}

TEST_CASE("workers answer in the order of their tasks, however many run at once", "[analysis]") {
  std::vector<std::function<std::string()>> tasks;
  for (int i = 0; i < 7; ++i) tasks.emplace_back([i] { return std::to_string(i * i); });
  for (const std::size_t at_once : {1u, 2u, 5u}) {
    const std::vector<std::string> answers = in_workers(tasks, at_once);
    REQUIRE(answers.size() == tasks.size());
    for (int i = 0; i < 7; ++i)
      CHECK(answers[static_cast<std::size_t>(i)] == std::to_string(i * i));
  }
}

}  // namespace stepsim
