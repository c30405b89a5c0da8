// Counts of kernels, operators and bytes as data.
#include "workloads/strategy/operators.hpp"

#include <algorithm>

#include "scenarios/load/load_scenario.hpp"
#include "scenarios/read/scenario_reader.hpp"
#include "sim/base/error.hpp"
#include "tests/support/exactly.hpp"
#include "tests/support/source_data.hpp"
#include "tests/support/tiny_step.hpp"
#include "topology/catalog.hpp"
#include "workloads/layers/rank_share.hpp"
#include "workloads/strategy/stack_operators.hpp"

using namespace stepsim;

namespace {

const Catalogue& data = source_data();

Document operators_file() {
  return read_document(data.file("workloads/operators.yaml"));
}

std::vector<std::string> problems_of(Document document) {
  try {
    read_operators(document.root());
    document.finish();
  } catch (const UserError& error) {
    std::vector<std::string> problems;
    for (const Problem& problem : error.problems())
      problems.push_back(problem.key + ": " + problem.message);
    return problems;
  }
  return {};
}

Unit first_norm(const TinyStep& step) {
  return layer_units(step.model, step.stack, step.strategy, load_of(step.model, step.job, 0), 0)
      .front();
}

}  // namespace

TEST_CASE("an operator's counts are data alone", "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero2);
  const double numbers = step.job.slots() * static_cast<double>(step.model.hidden);
  const KernelRow norm = first_norm(step).forward.front();
  CHECK(norm.op == Operator::norm);
  CHECK_THAT(norm.bytes, exactly(28 * numbers));
  CHECK(norm.launches == 6);
  Document file = operators_file();
  file.set("norm.bytes.value", "30 B");
  file.set("norm.kernels.value", "7");
  file.set("norm.operators", "{value: 5, low: 5, high: 5, grade: guess, source: a test}");
  file.set("backward.streaming", "{value: 3, low: 3, high: 3, grade: guess, source: a test}");
  step.stack.operators = read_operators(file.root());
  const Unit changed = first_norm(step);
  CHECK_THAT(changed.forward.front().bytes, exactly(30 * numbers));
  CHECK(changed.forward.front().launches == 7);
  CHECK(changed.forward.front().operators == 5);
  CHECK_THAT(changed.backward.front().bytes, exactly(90 * numbers));
  CHECK(changed.backward.front().operators == 15);
}

TEST_CASE("what is wrong in the file of operators is named", "[workloads]") {
  CHECK(problems_of(operators_file()).empty());
  Document file = operators_file();
  file.set("norm.bytes.value", "28");
  file.set("product.tiles", "[256x128, 64 by 64]");
  file.set("rope.kernel", "{value: 1, grade: guess, source: a test}");
  file.set("swiglu.bytes", "{value: 1 B, grade: guess, source: a test}");
  const std::vector<std::string> problems = problems_of(std::move(file));
  REQUIRE(problems.size() == 4);
  CHECK(problems[0] == "rope.kernel: unknown key (did you mean \"kernels\"?)");
  CHECK(problems[1].starts_with("swiglu: unknown key"));
  CHECK(problems[2] == "product.tiles: expected rows x width such as 256x128, found \"64 by 64\"");
  CHECK(problems[3] ==
        "norm.bytes.value: the unit is missing: expected a size such as \"80 GB\", found \"28\"");
}

TEST_CASE("a stack's file may have counts of its own code", "[workloads]") {
  const std::string text =
      read_document(data.file("scenarios/seeds/qwen3-30b-sft-zero3.yaml")).canonical();
  const std::vector<Setting> own{
      {"operators.norm.bytes",
       "{value: 40 B, low: 40 B, high: 44 B, grade: guess, source: a test}"}};
  const Scenario scenario = parse_scenario(data, text, "a test", {}, own);
  CHECK(scenario.stack.operators[Operator::norm].bytes == 40);
  CHECK(scenario.stack.operators[Operator::norm].kernels == 6);
  const Document file = parse_document("operators: {nrom: {bytes: {value: 40 B}}}", "s.yaml");
  operators_of_stack(file.root());
  CHECK_THROWS_WITH(file.finish(Leftovers::allowed),
                    "s.yaml:1: operators.nrom: no operator is called so (did you mean \"norm\"?)");
}

TEST_CASE("a scenario lists the operators that its step runs and may set them", "[scenarios]") {
  const auto constant = [](const Scenario& scenario, const std::string& name) {
    const auto place =
        std::find_if(scenario.constants.begin(), scenario.constants.end(),
                     [&](const NamedConstant& c) { return c.name == "operators." + name; });
    return place == scenario.constants.end() ? NamedConstant{} : *place;
  };
  const Scenario scenario = load_scenario(data, "qwen3-30b-sft-zero3");
  CHECK(constant(scenario, "norm_fused.bytes").value == 4);
  CHECK(constant(scenario, "norm_fused.bytes").low == 3.4);
  CHECK(constant(scenario, "norm.bytes").name.empty());
  CHECK(constant(scenario, "tutel_encode.bytes").name.empty());
  CHECK(constant(scenario, "softmax.bytes").name.empty());
  const Scenario with =
      load_scenario(data, "qwen3-30b-sft-zero3",
                    std::vector<Setting>{{"operators.norm.bytes", "40 B"},
                                         {"operators.tutel_encode.bytes", "9 B"}});
  CHECK(with.stack.operators[Operator::norm].bytes == 40);
  CHECK(constant(with, "norm.bytes").grade == Grade::given);
  CHECK(constant(with, "tutel_encode.bytes").value == 9);
}

TEST_CASE("tensor parallelism refuses a unit that it does not know", "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero0);
  step.strategy.tensor_parallel.size = 2;
  const Load load = load_of(step.model, step.job, 0);
  std::vector<Unit> units = layer_units(step.model, step.stack, step.strategy, load, 0);
  CHECK_NOTHROW(share_layer(units, step.model, step.strategy, load, false));
  units = layer_units(step.model, step.stack, step.strategy, load, 0);
  units[1].role = Role::none;
  units[1].name = "self_attn.indexer";
  CHECK_THROWS_WITH(share_layer(units, step.model, step.strategy, load, false),
                    "tensor parallelism does not know what \"self_attn.indexer\" is in a layer");
}
