// Bounds lie below what is replayed, and a search that uses them finds what trying everything
// finds.
#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/studies/plan/plan_search.hpp"
#include "analysis/studies/predict/prediction.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "scenarios/read/scenario_catalog.hpp"
#include "tests/support/exactly.hpp"
#include "tests/support/source_data.hpp"
#include "tests/support/worker.hpp"

namespace stepsim {
namespace {

PlanQuestion question_of(const std::string& model, const std::string& cluster,
                         const std::string& stack, std::int64_t batch, std::int64_t sequence) {
  PlanQuestion question;
  question.data = source_data();
  question.source = "plan";
  question.settings = {{"model", model},
                       {"cluster", cluster},
                       {"stack", stack},
                       {"job.sequence", std::to_string(sequence)}};
  question.batch = batch;
  return question;
}

std::vector<PlanQuestion> spaces() {
  std::vector<PlanQuestion> all{
      question_of("llama-3.2-3b", "{node: h100-8}", "megatron", 32, 4096),
      question_of("llama-3.2-1b", "{node: a100-8-40}", "fsdp2-eager", 16, 2048),
      question_of("qwen3-30b-a3b", "{node: mi300x-8}", "axolotl-rocm", 16, 2048),
      question_of("mixtral-8x7b", "{node: superpod-h100, nodes: 2}", "megatron", 16, 2048),
      question_of("llama-3.1-8b", "{node: superpod-h100, nodes: 2}", "megatron-deepspeed", 16,
                  4096),
      question_of("llama-3.2-3b", "{node: h100-8, nodes: 2, network: ethernet-25g}", "megatron", 32,
                  4096),
      question_of("qwen3-30b-a3b", "{node: superpod-h100, nodes: 2}", "megatron", 64, 4096),
  };
  for (const auto& [key, value] :
       {std::pair{"strategy.checkpointing", "none"}, std::pair{"strategy.moe.overlap", "true"},
        std::pair{"strategy.moe.dispatcher", "deepep"}})
    all.back().settings.emplace_back(key, value);
  all[3].settings.emplace_back("strategy.moe.dispatcher", "all_to_all");
  all.front().settings.emplace_back("strategy.precision", "fp8-current");
  all[1].settings.emplace_back("strategy.precision", "tf32");
  for (PlanQuestion& question : all) question.where = {"job.micro_batch <= 2"};
  all[2].where = {"job.micro_batch == 1"};
  for (const std::size_t place : {1u, 3u})
    all[place].where.emplace_back(
        "strategy.checkpointing == \"none\" and strategy.pipeline_parallel.virtual_stages <= 2");
  all[3].where.emplace_back("strategy.pipeline_parallel.size <= 2");
  all.back().where = {"job.micro_batch <= 2", "strategy.tensor_parallel.size == 1",
                      "strategy.pipeline_parallel.size <= 2"};
  return all;
}

// The tighter one of both.
LeastStep bound_of(LeastSteps& least, const StepInput& input) {
  LeastStep bound = least.of(input);
  bound.time = std::max(bound.time, least.in_turns(input));
  return bound;
}

// Against the replay of the same. Returns the bytes that this needs.
double check_bound(const LeastStep& bound, const std::string& source,
                   const std::vector<Setting>& settings) {
  const std::vector<double> figures = numbers_from_worker([&] {
    const Scenario scenario = load_scenario(source_data(), source, settings);
    const StepFigures step = step_figures(scenario, {}, Asked::everything);
    return std::vector{step.step_time.value, step.memory};
  });
  CHECK(bound.time.value <= figures[0] * (1 + 1e-9));
  CHECK(bound.bytes <= figures[1] * (1 + 1e-9));
  CHECK(bound.bytes > 0.1 * figures[1]);  // it says something
  return figures[1];
}

}  // namespace

TEST_CASE("no step is shorter or smaller than its bound", "[laws][slow]") {
  std::size_t compared = 0;
  for (const PlanQuestion& question : spaces()) {
    const PlanSpace space = plan_space(question);
    LeastSteps least(space.kinds.front().scenario.cluster);
    const std::size_t stride = std::max<std::size_t>(1, space.plans.size() / 30);
    for (std::size_t i = 0; i < space.plans.size(); i += stride) {
      CAPTURE(question.settings.front().second, plan_text(space, space.plans[i]));
      const LeastStep bound = bound_of(least, input_of(space, space.plans[i]));
      check_bound(bound, question.source, settings_of(space.sweep, space.points[i]));
      CHECK(bound.time.value > 0);
      ++compared;
    }
  }
  CHECK(compared > 120);
}

TEST_CASE("no scenario is shorter or smaller than its bound", "[laws][slow]") {
  std::size_t compared = 0;
  for (const std::string& name : scenario_names(source_data())) {
    const Scenario scenario = load_scenario(source_data(), name);
    if (scenario.grpo) continue;
    CAPTURE(name);
    LeastSteps least(scenario.cluster);
    check_bound(bound_of(least, step_input(scenario)), name, {});
    ++compared;
  }
  CHECK(compared >= 50);
}

// The first stage has the dense layers, which are the smaller ones.
TEST_CASE("the fullest stage of a plan may have layers of another kind", "[laws][slow]") {
  const std::vector<Setting> all{
      {"model", "deepseek-v3"},
      {"cluster", "{node: superpod-h100, nodes: 128}"},
      {"stack", "megatron"},
      {"job.sequence", "4096"},
      {"strategy.tensor_parallel.size", "2"},
      {"strategy.pipeline_parallel.size", "16"},
      {"strategy.pipeline_parallel.layers", "[4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 3, 3, 3]"},
      {"strategy.moe.expert_parallel", "8"},
      {"job.gradient_accumulation", "32"}};
  const Scenario scenario = load_scenario(source_data(), "plan", all);
  const LeastStep bound = LeastSteps(scenario.cluster).of(step_input(scenario));
  CHECK(bound.bytes > 0.9 * check_bound(bound, "plan", all));
}

// Embedding and head in the place of a layer each: the first and the last piece have none.
TEST_CASE("the fullest stage of a plan need not be the first", "[laws][slow]") {
  std::string layers = "[2";
  for (int piece = 1; piece < 31; ++piece) layers += ", 3";
  const std::string stages = "strategy.pipeline_parallel.";
  const std::vector<Setting> all{{"model", "qwen3-235b-a22b"},
                                 {"cluster", "{node: h100-8, nodes: 32}"},
                                 {"stack", "megatron"},
                                 {"job.sequence", "4096"},
                                 {stages + "size", "16"},
                                 {stages + "virtual_stages", "2"},
                                 {stages + "schedule", "interleaved"},
                                 {stages + "layers", layers + ", 2]"},
                                 {"strategy.moe.expert_parallel", "8"},
                                 {"job.gradient_accumulation", "32"}};
  const Scenario scenario = load_scenario(source_data(), "plan", all);
  const LeastStep bound = LeastSteps(scenario.cluster).of(step_input(scenario));
  const double needed = check_bound(bound, "plan", all);
  CHECK(bound.bytes > 0.95 * needed);
}

TEST_CASE("a job that only updates keeps nothing for a backward pass", "[laws]") {
  const std::vector<Setting> update{{"job.only_update", "true"}, {"job.micro_batch", "16"}};
  const Scenario whole = load_scenario(source_data(), "llama32-3b-sft-zero3");
  const Scenario only = load_scenario(source_data(), "llama32-3b-sft-zero3", update);
  const LeastStep bound = LeastSteps(only.cluster).of(step_input(only));
  CHECK(bound.bytes < LeastSteps(whole.cluster).of(step_input(whole)).bytes);
  check_bound(bound, "llama32-3b-sft-zero3", update);
}

// A step's own gradients are then of 16 bits, and those of the update of 32.
TEST_CASE("gradients that wait unreduced are bounded by the type they have", "[laws]") {
  const std::vector<Setting> all{
      {"model",
       "{architectures: [GPT2LMHeadModel], n_layer: 1, n_embd: 25600, n_head: 160, vocab_size: "
       "51200, n_positions: 2048}"},
      {"cluster", "{node: rtx5090-1}"},
      {"stack", "litgpt"},
      {"job.sequence", "1024"},
      {"job.gradient_accumulation", "2"},
      {"strategy.zero", "fsdp"}};
  const Scenario scenario = load_scenario(source_data(), "plan", all);
  const LeastStep bound = LeastSteps(scenario.cluster).of(step_input(scenario));
  CHECK(bound.bytes > 0.8 * check_bound(bound, "plan", all));
}

// FSDP's second version keeps them whole, in the type in which it reduces, until the last
// micro-batch: with few rows they are most of what a GPU holds.
TEST_CASE("gradients of many GPUs that wait unreduced are bounded whole", "[laws]") {
  const auto share_of = [](const std::string& pipeline, const std::string& micro_batches) {
    const std::vector<Setting> all{{"model", "llama-3.1-8b"},
                                   {"cluster", "{node: h100-8}"},
                                   {"stack", "fsdp2-eager"},
                                   {"job.sequence", "1024"},
                                   {"job.gradient_accumulation", micro_batches},
                                   {"strategy.zero", "fsdp"},
                                   {"strategy.fsdp.sync_each_batch", "false"},
                                   {"strategy.pipeline_parallel", pipeline}};
    const Scenario scenario = load_scenario(source_data(), "plan", all);
    const LeastStep bound = LeastSteps(scenario.cluster).of(step_input(scenario));
    return bound.bytes / check_bound(bound, "plan", all);
  };
  CHECK(share_of("{size: 1}", "2") > 0.8);
  CHECK(share_of("{size: 2}", "16") > 0.6);
  CHECK(share_of("{size: 2, schedule: zb_h1}", "16") > 0.4);
  CHECK(share_of("{size: 2, virtual_stages: 2, schedule: zbv}", "16") > 0.4);
}

// Few layers, whose activations are beside those of a head of many rows.
TEST_CASE("adapters on packed weights hold no less than their bound", "[laws]") {
  const std::vector<Setting> all{
      {"model",
       "{architectures: [GPTNeoXForCausalLM], num_hidden_layers: 3, hidden_size: 6144, "
       "intermediate_size: 24576, num_attention_heads: 64, vocab_size: 50432, "
       "max_position_embeddings: 2048, tie_word_embeddings: false, rotary_pct: 0.25}"},
      {"cluster", "{node: h100-8}"},
      {"stack", "llama-factory-liger"},
      {"job.sequence", "40040"},
      {"strategy.checkpointing", "operators"},
      {"strategy.lora.quantised", "fp4"}};
  const Scenario scenario = load_scenario(source_data(), "plan", all);
  const LeastStep bound = LeastSteps(scenario.cluster).of(step_input(scenario));
  CHECK(bound.bytes > 0.8 * check_bound(bound, "plan", all));
}

TEST_CASE("a search with bounds finds what trying every plan finds", "[laws][slow]") {
  for (const PlanQuestion& question : spaces()) {
    const PlanSpace space = plan_space(question);
    CAPTURE(question.settings.front().second, space.plans.size());
    const PlanAnswer whole =
        search_plans(space, {.data = question.data, .samples = 0, .prune = false});
    CHECK(whole.replayed == space.plans.size());
    for (const PlanGoal goal : {PlanGoal::time, PlanGoal::memory}) {
      const PlanAnswer pruned =
          search_plans(space, {.data = question.data, .goal = goal, .samples = 0});
      CHECK(pruned.replayed + pruned.too_large + pruned.too_slow == space.plans.size());
      std::vector<double> figures, found;
      for (const SweepRow& row : whole.table.rows)
        if (row.outcome.feasible) figures.push_back(goal_of(row.outcome, goal));
      std::ranges::sort(figures);
      for (const FoundPlan& plan : pruned.best) found.push_back(goal_of(plan.outcome, goal));
      REQUIRE(!found.empty());
      CHECK(found.front() == figures.front());
      CHECK(std::ranges::all_of(
          found, [&](double figure) { return std::ranges::binary_search(figures, figure); }));
      if (goal != PlanGoal::time) continue;
      REQUIRE(pruned.best.size() == whole.best.size());
      for (std::size_t i = 0; i < whole.best.size(); ++i)
        CHECK(pruned.best[i].plan == whole.best[i].plan);
    }
    // The best of those that leave half of the memory, or of all where none does.
    const PlanAnswer roomy =
        search_plans(space, {.data = question.data, .samples = 0, .free = 0.5});
    double best = std::numeric_limits<double>::infinity();
    for (const SweepRow& row : whole.table.rows)
      if (row.outcome.feasible && row.outcome.of("peak_memory").value_or(0) <=
                                      0.5 * row.outcome.of("memory_capacity").value_or(0))
        best = std::min(best, goal_of(row.outcome, PlanGoal::time));
    CHECK((roomy.free == 0) == std::isinf(best));
    if (roomy.free > 0) CHECK(goal_of(roomy.best.front().outcome, PlanGoal::time) == best);
  }
}

}  // namespace stepsim
