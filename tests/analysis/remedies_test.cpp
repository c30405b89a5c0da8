// What would make a run fit: whatever is named can be set, keeps the rows of a step or says that it
// does not, and is no more than is needed.
#include "analysis/studies/outcome/remedies.hpp"

#include <algorithm>

#include "analysis/studies/outcome/known_changes.hpp"
#include "analysis/studies/plan/plan_space.hpp"
#include "analysis/studies/predict/footprint_text.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "sim/base/lists.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"
#include "tests/support/temporary_folder.hpp"

namespace stepsim {
namespace {

const Catalogue& data = source_data();

// A scenario of the catalogue or of a file, and what would make it fit.
struct Asked {
  std::string source;
  std::vector<Setting> settings;
  Scenario scenario = load_scenario(data, source, settings);

  RemedyQuestion question() const { return {data, source, settings, scenario}; }
  Scenario with(const std::vector<Setting>& change) const {
    std::vector<Setting> all = settings;
    append(all, change);
    return load_scenario(data, source, all);
  }
  Fit fit_with(const std::vector<Setting>& change) const { return footprint(with(change)).fit(); }
};

std::vector<std::string> changes_of(const std::vector<Remedy>& list) {
  return mapped(list, [](const Remedy& each) { return change_text(each.settings, each.rows); });
}

constexpr std::string_view distributed = R"(
name: a distributed optimizer
model: llama-3.1-8b
cluster: {node: h100-8, nodes: 1}
stack: megatron
job: {method: sft, sequence: 4096, micro_batch: 1, global_batch: 64}
strategy: {zero: 1, checkpointing: none, precision: bf16, distributed_optimizer: {}}
)";
constexpr std::string_view long_answers = R"(
name: long answers
model: qwen2.5-32b
cluster: {node: h100-8, nodes: 12}
stack: deepspeed-hf
job:
  method: grpo
  num_learners_per_node: [8, 8, 8, 8]
  vllm_num_engines: 32
  num_unique_prompts_rollout: 64
  num_samples_per_prompt_rollout: 8
  max_prompt_token_length: 2048
  response_length: 32768
  pack_length: 35840
  async_steps: 4
  response_lengths: {type: lognormal, mean: 8000}
strategy: {zero: 3, checkpointing: full}
)";
constexpr std::string_view long_rows = R"(
name: long rows
model: llama-3.1-8b
cluster: {node: h100-8, nodes: 1}
stack: deepspeed-hf
job: {method: sft, sequence: 65536, micro_batch: 1, gradient_accumulation: 2}
strategy: {zero: 3, checkpointing: full, precision: bf16}
)";

std::string written(const TemporaryFolder& folder, std::string_view text) {
  const std::string file = folder.file("asked.yaml");
  std::ofstream(file) << text;
  return file;
}

}  // namespace

TEST_CASE("every remedy for a run that does not fit can be set, and makes it fit", "[analysis]") {
  const Asked asked{"mpt7b-zero2-oom", {}};
  REQUIRE(footprint(asked.scenario).fit() == Fit::oom);
  const std::vector<Remedy> list = remedies(asked.question());
  CHECK(!list.empty());
  for (const Remedy& remedy : list) {
    CAPTURE(change_text(remedy.settings));
    CHECK(asked.fit_with(remedy.settings) != Fit::oom);
  }
}

TEST_CASE("the micro-batch is the largest that fits and divides the rows, which stay",
          "[analysis]") {
  const Asked asked{"llama32-3b-sft-zero3", {{"job.micro_batch", "256"}}};
  REQUIRE(footprint(asked.scenario).fit() == Fit::oom);
  const std::vector<Remedy> list = remedies(asked.question());
  REQUIRE(!list.empty());
  const std::vector<Setting>& change = list.front().settings;
  REQUIRE(change.size() == 2);
  REQUIRE(change[0].first == "job.micro_batch");
  const std::int64_t largest = std::stoll(change[0].second);
  CHECK(change[1] == Setting{"job.gradient_accumulation",
                             std::to_string(256 * asked.scenario.job.accumulation / largest)});
  CHECK(list.front().rows == 1);
  CHECK(asked.fit_with({{"job.micro_batch", std::to_string(2 * largest)}}) == Fit::oom);
}

TEST_CASE("a change of rows is said where micro-batches do not make up for it", "[analysis]") {
  const Asked asked{"llama32-3b-sft-zero3", {{"strategy.zero", "0"}, {"model", "llama-3.1-70b"}}};
  for (const Remedy& more : more_nodes(asked.question())) {
    const Scenario changed = asked.with(more.settings);
    const double ratio = changed.cluster.ranks() * static_cast<double>(changed.job.accumulation) /
                         asked.scenario.cluster.ranks() /
                         static_cast<double>(asked.scenario.job.accumulation);
    CHECK(more.rows == ratio);
  }
  CHECK(change_text({{"job.micro_batch", "4"}}, 0.5) == "job.micro_batch: 4 (half the rows)");
  CHECK(change_text({{"cluster.nodes", "2"}}, 2) == "cluster.nodes: 2 (twice the rows)");
  CHECK(change_text({{"cluster.nodes", "4"}}, 4) == "cluster.nodes: 4 (4 times the rows)");
  CHECK(change_text({{"strategy.zero", "3"}}) == "strategy.zero: 3");
}

TEST_CASE("tensor sizes and stages are tried, and the global batch stays", "[analysis]") {
  const TemporaryFolder folder;
  const Asked asked{written(folder, distributed), {}};
  REQUIRE(footprint(asked.scenario).fit() == Fit::oom);
  const std::vector<std::string> changes = changes_of(remedies(asked.question()));
  CHECK(holds(changes, "strategy.tensor_parallel.size: 2"));
  CHECK(holds(changes, "strategy.pipeline_parallel.size: 2"));
}

TEST_CASE("what the scenario's rules refuse is not offered", "[analysis]") {
  const TemporaryFolder folder;
  const Asked asked{written(folder, distributed), {}};
  const std::vector<Remedy> list = remedies(asked.question());
  REQUIRE(!list.empty());
  for (const std::string& change : changes_of(list)) {
    CAPTURE(change);
    CHECK(!change.starts_with("strategy.zero"));
    CHECK(!change.starts_with("strategy.offload.optimizer"));
  }
}

TEST_CASE("GPUs that share a sequence are offered where the program has them", "[analysis]") {
  const TemporaryFolder folder;
  std::string text{long_rows};
  text.replace(text.find("deepspeed-hf"), 12, "axolotl");
  text.replace(text.find("65536"), 5, "131072");
  const Asked asked{written(folder, text), {}};
  REQUIRE(footprint(asked.scenario).fit() == Fit::oom);
  const std::vector<std::string> changes = changes_of(remedies(asked.question()));
  CHECK(std::ranges::any_of(changes, [](const std::string& change) {
    return change.starts_with("strategy.sequence_parallel.ring: ");
  }));
}

TEST_CASE("the loss chunk by chunk is tried alone", "[analysis]") {
  const TemporaryFolder folder;
  const Asked asked{written(folder, long_rows), {}};
  REQUIRE(footprint(asked.scenario).fit() == Fit::oom);
  CHECK(holds(changes_of(remedies(asked.question())), "strategy.cross_entropy: fused"));
}

TEST_CASE("no part of a pair is enough, and each changes something", "[analysis]") {
  const TemporaryFolder folder;
  const Asked asked{written(folder, long_rows), {{"job.sequence", "131072"}}};
  REQUIRE(remedies(asked.question()).empty());
  const std::vector<Remedy> pairs = paired_remedies(asked.question());
  CHECK(!pairs.empty());
  const std::vector<ResolvedKey> keys = resolved_keys(asked.scenario);
  for (const Remedy& pair : pairs) {
    CAPTURE(change_text(pair.settings));
    CHECK(asked.fit_with(pair.settings) != Fit::oom);
    for (const Setting& part : pair.settings) CHECK(!says_so(keys, part));
  }
  // One that needs a further setting beside such a pair is none.
  for (const Remedy& one : pairs)
    for (const Remedy& other : pairs)
      if (&one != &other)
        CHECK(!std::ranges::all_of(
            one.settings, [&](const Setting& each) { return holds(other.settings, each); }));
}

TEST_CASE("a stack of FSDP has no stages of DeepSpeed, one of Megatron only the first",
          "[analysis]") {
  const auto stack = [](const std::string& name) {
    return load_scenario(data, "llama32-3b-sft-zero3", std::vector<Setting>{{"stack", name}}).stack;
  };
  for (const std::string name : {"fsdp2-eager", "torchtune"}) {
    CHECK(!has_sharding(stack(name), "3"));
    CHECK(has_sharding(stack(name), "fsdp"));
  }
  CHECK(has_sharding(stack("megatron"), "1"));
  CHECK(!has_sharding(stack("megatron"), "2"));
  CHECK(has_sharding(stack("trl"), "3"));
  CHECK(has_sharding(stack("trl"), "fsdp"));  // over accelerate
  const TemporaryFolder folder;
  const Asked asked{written(folder, distributed),
                    {{"stack", "fsdp2-eager"}, {"strategy", "{zero: fsdp}"}}};
  for (const KnownChange& change : known_changes(data, asked.scenario))
    CHECK(change.settings.front() != Setting{"strategy.zero", "3"});
  for (const std::vector<Setting>& change : same_job_changes(data, asked.scenario))
    CHECK(change.front() != Setting{"strategy.zero", "3"});
}

TEST_CASE("changes of adapters are tried where there are adapters alone", "[analysis]") {
  const auto of_adapters = [](const std::vector<Setting>& settings) {
    const Asked asked{"llama32-3b-sft-zero3", settings};
    const auto touches = [](const std::vector<Setting>& change) {
      return std::ranges::any_of(
          change, [](const Setting& each) { return each.first.starts_with("strategy.lora."); });
    };
    const std::vector<KnownChange> known = known_changes(data, asked.scenario);
    const bool any = std::ranges::any_of(known, touches, &KnownChange::settings);
    CHECK(std::ranges::any_of(same_job_changes(data, asked.scenario), touches) == any);
    return any;
  };
  CHECK_FALSE(of_adapters({}));
  CHECK(of_adapters({{"strategy.lora.rank", "16"}}));
}

TEST_CASE("another micro-batch of a sweep's point keeps the rows, or says what becomes of them",
          "[analysis]") {
  const Asked asked{"llama32-3b-sft-zero3",
                    {{"job.micro_batch", "2"}, {"job.gradient_accumulation", "4"}}};
  std::vector<std::string> texts;
  for (const KnownChange& change : known_changes(data, asked.scenario))
    texts.push_back(change_text(change.settings, change.rows));
  CHECK(holds(texts, "job.micro_batch: 4, job.gradient_accumulation: 2"));
  CHECK(holds(texts, "job.micro_batch: 16 (8 times the rows)"));
}

TEST_CASE("of all that is too small a GPU comes first", "[analysis]") {
  Footprint needs;
  needs.margin = {-575e9, -591e9, -558e9};
  needs.host.peak.bytes = 60e9;
  needs.host.peak.phase = "flattening";
  needs.host_capacity = 10e9;
  CHECK(verdict_text(needs) ==
        "does not fit, on a GPU 575 GB too much (-591 GB to -558 GB), and 50.0 GB of host memory "
        "too much in flattening");
  needs.host_capacity = 60e9;
  CHECK(verdict_text(needs) == "does not fit, 575 GB too much (-591 GB to -558 GB)");
  needs.margin = {1e9, 1e9, 1e9};
  needs.host_capacity = 10e9;
  CHECK(verdict_text(needs) == "does not fit, 50.0 GB of host memory too much in flattening");
}

TEST_CASE("plans of a GRPO job that fits nowhere share sequences, and engines fill what is left",
          "[analysis]") {
  const TemporaryFolder folder;
  PlanQuestion question;
  question.data = data;
  question.source = written(folder, long_answers);
  question.settings = {{"job.num_learners_per_node", "[8, 8, 8, 8]"},
                       {"job.vllm_tensor_parallel_size", "2"}};
  const PlanSpace space = plan_space(question);
  const auto sets = [](const PlanKind& kind, const Setting& setting) {
    return holds(kind.settings, setting);
  };
  bool shared = false;
  for (const PlanKind& kind : space.kinds) {
    CHECK(sets(kind, {"job.vllm_num_engines", "auto"}));
    shared |= kind.fits && sets(kind, {"job.sequence_parallel_size", "2"});
  }
  CHECK(shared);
  question.settings.emplace_back("job.vllm_num_engines", "2");
  for (const PlanKind& kind : plan_space(question).kinds)
    CHECK(!holds(kind.settings, std::string("job.vllm_num_engines"), &Setting::first));
}

}  // namespace stepsim
