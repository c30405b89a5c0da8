// Rows of tables of steps: the scenario that a row is, and what was measured of it.
#include "scenarios/rows/step_row.hpp"

#include <algorithm>

#include "scenarios/read/scenario_reader.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"

using namespace stepsim;
using Catch::Contains;

namespace {

const Catalogue& data = source_data();

StepRow row_of(std::string_view columns, std::string_view cells) {
  const CsvTable table =
      parse_csv("id," + std::string(columns) + "\nr," + std::string(cells) + "\n", "r.csv");
  return step_rows(data, table).front();
}

constexpr std::string_view whole =
    "\"{model: llama-3.1-8b, cluster: {node: h100-8}, stack: fsdp2-eager, job: {sequence: 8192, "
    "micro_batch: 2}, strategy: {zero: fsdp, checkpointing: full}}\"";

}  // namespace

TEST_CASE("a row is the scenario that it holds, under its own name and family", "[scenarios]") {
  const StepRow row = row_of("family,scenario,step_s", "some," + std::string(whole) + ",2.84");
  REQUIRE(row.missing.empty());
  CHECK(row.stack == "fsdp2-eager");
  CHECK(row.step == Cell{2.84});
  CHECK(row.scenario == "name: r\nfamily: some\n" + row.run);
  const Scenario scenario = parse_scenario(data, row.scenario, "r");
  CHECK(scenario.family == "some");
  CHECK(scenario.strategy.checkpointing == Checkpointing::full);
  CHECK(scenario.job.micro_batch == 2);
}

TEST_CASE("columns named by keys are a scenario, or come on top of one", "[scenarios]") {
  const StepRow keys =
      row_of("model,stack,cluster.node,job.sequence,strategy.zero,strategy.lora.rank,hardware",
             "llama-3.1-8b,trl,h100-8,4096,3,8,an H100");
  REQUIRE(keys.missing.empty());
  const Scenario made = parse_scenario(data, keys.scenario, "r");
  CHECK(made.job.sequence == 4096);
  CHECK(made.strategy.lora.rank == 8);
  CHECK(keys.said("hardware") == "an H100");
  const StepRow over =
      row_of("model,scenario,job.sequence", "as printed," + std::string(whole) + ",1024");
  REQUIRE(over.missing.empty());
  CHECK(parse_scenario(data, over.scenario, "r").job.sequence == 1024);
}

TEST_CASE("a row without a scenario says what it lacks", "[scenarios]") {
  CHECK_THAT(row_of("hardware,gpus", "H100,8").missing.front(),
             Contains("a scenario: in a column"));
  CHECK(row_of("not_expressed,step_s", "no such card | no such stack,1").missing ==
        std::vector<std::string>{"no such card", "no such stack"});
  CHECK_THAT(row_of("scenario", "{model: [}").missing.front(), Contains("r:1"));
  CHECK(row_of("scenario,step_s", std::string(whole) + ",long").missing.front() ==
        "step_s: expected a number, found \"long\"");
  CHECK_THROWS_WITH(step_rows(data, parse_csv("name\nx\n", "r.csv")),
                    Contains("r.csv:1: id: the column is missing"));
}

TEST_CASE("words of a closed list are named where a cell has another", "[scenarios]") {
  const auto reason = [](const std::string& columns, const std::string& cells) {
    return row_of("scenario," + columns, std::string(whole) + "," + cells).missing.front();
  };
  CHECK(reason("outcome", "failed") == "outcome: expected ran or oom, found \"failed\"");
  CHECK(reason("mem_GB,mem_kind", "70,reservd") ==
        "mem_kind: expected allocated, reserved, device or unsaid, found \"reservd\" (did you mean "
        "\"reserved\"?)");
}

TEST_CASE("a figure of memory counts what the row says, else what its stack's log counts",
          "[scenarios]") {
  const auto row = [](const std::string& cells) {
    return row_of("scenario,mem_GB,mem_kind,mem_counted", std::string(whole) + "," + cells);
  };
  const Stack::MemoryLog log{.kind = MemoryKind::reserved, .binary = true};
  CHECK_FALSE(row("70,,log").memory_kind);
  CHECK(row("70,,log").measured_memory(log) == 70 * 0x1p30);
  CHECK(row("70,device,GB").measured_memory(log) == 70e9);
  CHECK(row("70,device,").measured_memory(log) == 70e9);
  CHECK(row("70,allocated,GiB").measured_memory({}) == 70 * 0x1p30);
  CHECK(row("70,allocated,GiB").memory_kind == MemoryKind::allocated);
  CHECK_FALSE(row("70,not compared: of the longest batch,").memory);
}

TEST_CASE("releases and types that other columns state are the scenario's", "[scenarios]") {
  const auto row = [](const std::string& version, const std::string& precision) {
    return row_of("scenario,framework_version,precision",
                  "\"{model: llama-3.1-8b, cluster: {node: h100-8}, stack: trl, job: {sequence: "
                  "4096}, strategy: {zero: 0, lora: {rank: 8}}}\",\"" +
                      version + "\",\"" + precision + "\"");
  };
  const StepRow old =
      row("transformers 4.48.1, peft 0.13.2 (beside the table)", "bf16, no autocast");
  REQUIRE(old.missing.empty());
  const Scenario asked = parse_scenario(data, old.scenario, "r");
  CHECK(asked.strategy.shifts_logits);
  CHECK(asked.strategy.lora.type == AdapterType::fp32);
  const Scenario newest =
      parse_scenario(data, row("LitGPT 8641822, torch 2.8", "bf16").scenario, "r");
  CHECK_FALSE(newest.strategy.shifts_logits);
  CHECK_FALSE(newest.strategy.lora.type);
}

TEST_CASE("a row that does not say what was computed again offers more of it", "[scenarios]") {
  const StepRow row = row_of(
      "scenario,lighter", std::string(whole) +
                              ",\"{\"\"some: mlp\"\": {strategy.checkpointing: selective, "
                              "strategy.recompute_modules: [mlp]}, none: {strategy.checkpointing: "
                              "none}}\"");
  REQUIRE(row.missing.empty());
  REQUIRE(row.lighter.size() == 2);
  CHECK(row.lighter.front().checkpointing == "some: mlp");
  CHECK(parse_scenario(data, row.lighter.back().scenario, "r").strategy.checkpointing ==
        Checkpointing::none);
}

TEST_CASE("what recipes and the stack fill in is said", "[scenarios]") {
  const StepRow row = row_of("scenario,taken",
                             "\"{model: llama-3.1-8b, cluster: {node: h100-8}, stack: fsdp2-eager, "
                             "recipe: torchtitan-allocator, job: {sequence: 8192}}\",one | two");
  REQUIRE(row.missing.empty());
  CHECK(row.assumed ==
        std::vector<std::string>{
            "one", "two", "as torchtitan's launchers have it: strategy.expandable_segments: true"});
}

TEST_CASE("a row of a GRPO job or of its weight sync is known by what it holds", "[scenarios]") {
  const StepRow job = row_of("scenario,gen_s",
                             "\"{model: llama-3.1-8b, cluster: {node: h100-8}, stack: trl, job: "
                             "{method: grpo}}\",3");
  CHECK(job.grpo);
  CHECK(job.generation == Cell{3});
  CHECK(row_of("family,not_expressed", "grpo in turn h100-sxm,no batch").grpo);
  CHECK(row_of("scenario,sync_of", std::string(whole) + ",learners without saving").sync_of ==
        SyncOf::unsaved);
}

TEST_CASE("every row of the catalogue's tables is a scenario or says why not", "[scenarios]") {
  std::size_t scenarios = 0;
  for (const char* name : {"steps/moe", "steps/mi300x", "grpo/grpo"})
    for (const StepRow& row :
         step_rows(data, read_csv(data.file("scenarios/measured/") + std::string(name) + ".csv"))) {
      CAPTURE(row.id);
      CHECK(row.scenario.empty() == !row.missing.empty());
      CHECK(row.has_figure());
      scenarios += row.scenario.empty() ? 0 : 1;
    }
  CHECK(scenarios > 90);
}
