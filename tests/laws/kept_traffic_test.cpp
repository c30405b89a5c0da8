// Traffic is planned once for steps that differ in nothing that carries it, and gets other times
// where they differ in rates alone. Neither must ever change a figure.
#include <fmt/format.h>

#include <string>

#include "analysis/studies/predict/prediction.hpp"
#include "scenarios/read/scenario_reader.hpp"
#include "sim/process/worker.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"

namespace stepsim {
namespace {

constexpr std::string_view sharded = R"(
name: kept
model: llama-3.2-3b
cluster: {node: h100-8, nodes: 4}
stack: fsdp2-eager
job: {sequence: 4096, micro_batch: 1}
strategy: {zero: fsdp}
)";
// How far the host runs ahead hangs on a constant.
constexpr std::string_view with_experts = R"(
name: kept
model: qwen1.5-moe-a2.7b
cluster: {node: mi300x-8}
stack: deepspeed-hf-rocm
job: {sequence: 4096, micro_batch: 2}
strategy: {zero: 3, moe: {kernel: loop}}
)";
std::string stages(int micro_batches) {
  return fmt::format(R"(
name: kept
model: llama-3.2-3b
cluster: {{node: h100-8, nodes: 2}}
stack: megatron
job: {{sequence: 4096, micro_batch: 1, gradient_accumulation: {}}}
strategy:
  zero: 1
  gradient_dtype: fp32
  tensor_parallel: {{size: 4}}
  pipeline_parallel: {{size: 4}}
  distributed_optimizer: {{}}
)",
                     micro_batches);
}
const std::string staged = stages(8), many_batches = stages(96);

struct Known {
  double seconds = 0, bytes = 0;

  friend bool operator==(const Known&, const Known&) = default;
};

struct Question {
  std::string_view text;
  MaybeDraw draw;
  void (*change)(Scenario&) = nullptr;
};

Known known_of(const Question& question) {
  Scenario scenario = parse_scenario(source_data(), question.text, "kept.yaml", question.draw);
  if (question.change != nullptr) question.change(scenario);
  const StepFigures figures = step_figures(scenario, {}, Asked::everything);
  return {figures.step_time.value, figures.memory};
}

// Each answer in a process of its own, where nothing is kept.
std::vector<Known> planned_anew(const std::vector<Question>& questions) {
  std::vector<Known> alone;
  for (const Question& each : questions) alone.push_back(in_worker([&] { return known_of(each); }));
  return alone;
}

constexpr LinkId first_port{0};

void slow_link(Scenario& scenario) {
  scenario.cluster.slow_links = {{first_port, 0.25}};
}
void slower_link(Scenario& scenario) {
  scenario.cluster.slow_links = {{first_port, 0.125}};
}
void other_link(Scenario& scenario) {
  scenario.cluster.slow_links = {{LinkId{1}, 0.125}};
}
// As learners of a GRPO job lie on nodes that engines share.
void last_node_short(Scenario& scenario) {
  scenario.cluster.uneven = {8, 8, 8, 4};
}
void first_node_short(Scenario& scenario) {
  scenario.cluster.uneven = {4, 8, 8, 8};
}
void slow_host(Scenario& scenario) {
  for (Constant<Seconds>* launch :
       {&scenario.stack.host.forward_launch, &scenario.stack.host.backward_launch})
    launch->value.value *= 50;
}
void slow_core(Scenario& scenario) {
  scenario.cluster.node.host.core_speed.value.value /= 50;
}

}  // namespace

TEST_CASE("a step takes the same time and memory whatever was asked before it", "[laws]") {
  std::vector<Question> questions;
  for (std::uint32_t sample = 0; sample < 6; ++sample)
    for (const std::string_view text :
         {sharded, std::string_view(staged), std::string_view(many_batches), with_experts}) {
      questions.push_back({text, {}});
      questions.push_back({text, Draw{.seed = 1, .sample = sample, .of = 6}});
    }
  const std::vector<Known> alone = planned_anew(questions);
  for (std::size_t i = 0; i < questions.size(); ++i) CHECK(known_of(questions[i]) == alone[i]);
  for (std::size_t i = 0; i < 2 * 4; i += 2)  // a draw moves the step
    CHECK(alone[i].seconds != alone[i + 1].seconds);
}

TEST_CASE(
    "a step on links that are slow, on nodes that are not full or beside another host is its own",
    "[laws]") {
  std::vector<Question> questions{{sharded, {}}};
  for (void (*change)(Scenario&) : {slow_link, slower_link, other_link, last_node_short,
                                    first_node_short, slow_host, slow_core}) {
    questions.push_back({sharded, {}, change});
    questions.push_back({sharded, {}});  // and back
  }
  for (void (*change)(Scenario&) : {slow_link, slow_host, slow_core}) {
    questions.push_back({staged, {}, change});
    questions.push_back({staged, {}});
  }
  const std::vector<Known> alone = planned_anew(questions);
  for (std::size_t i = 0; i < questions.size(); ++i) {
    CAPTURE(i);
    CHECK(known_of(questions[i]) == alone[i]);
  }
  // Each of them moves the step.
  CHECK(alone[1].seconds > alone[0].seconds);
  CHECK(alone[3].seconds > alone[1].seconds);
  CHECK(alone[7].seconds != alone[0].seconds);
  CHECK(alone[11].seconds > alone[0].seconds);
  CHECK(alone[13].seconds > alone[0].seconds);
}

TEST_CASE("steps that carry alike share their traffic, others do not", "[laws]") {
  const auto cluster_of = [](const MaybeDraw& draw) {
    return parse_scenario(source_data(), sharded, "kept.yaml", draw).cluster;
  };
  const Cluster stated = cluster_of({});
  Cluster other = stated;
  other.gpu.gemm.start.value.value *= 2;
  CHECK(carry_alike(stated, other));
  other = stated;
  other.node.collectives.launch.value.value *= 2;
  CHECK_FALSE(carry_alike(stated, other));
  other = stated;
  other.network->port.value.value *= 2;
  CHECK_FALSE(carry_alike(stated, other));
  other = stated;
  other.gpu.interference.compute.value.value /= 2;
  CHECK_FALSE(carry_alike(stated, other));
  other = stated;
  other.speeds.assign(other.ranks(), 1);
  other.speeds.front() = 0.5;
  CHECK_FALSE(carry_alike(stated, other));
  other = stated;
  other.gpu.host_launch.eager_op.value.value *= 2;
  CHECK(carry_alike(stated, other));
  other = stated;
  other.slow_links = {{first_port, 0.5}};
  CHECK_FALSE(carry_alike(stated, other));
  Cluster slower = other;
  slower.slow_links = {{first_port, 0.25}};
  CHECK_FALSE(carry_alike(other, slower));
  other = stated;
  other.uneven = {8, 8, 8, 4};
  CHECK_FALSE(carry_alike(stated, other));
  other = stated;
  other.nodes += 1;
  CHECK_FALSE(carry_alike(stated, other));
  other = stated;
  other.gpus_used = 1;
  CHECK_FALSE(carry_alike(stated, other));
  CHECK_FALSE(carry_alike(stated, cluster_of(Draw{.seed = 1, .sample = 0, .of = 4})));
}

}  // namespace stepsim
