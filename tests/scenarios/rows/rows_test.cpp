// What rows of tables of steps become, and what they lack.
#include <algorithm>

#include "scenarios/read/scenario_reader.hpp"
#include "scenarios/rows/expressed_row.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/step_rows.hpp"

using namespace stepsim;
using Catch::Contains;

namespace {

const std::string data = STEPSIM_SOURCE_DATA;

}  // namespace

TEST_CASE("a row becomes the scenario that a person would write", "[scenarios]") {
  const ExpressedRow made = express(row_of(usual), catalog());
  REQUIRE(made.missing.empty());
  CHECK(made.family == "dense fsdp2-eager h100-sxm");
  const Scenario scenario = parse_scenario(data, made.scenario, "r");
  CHECK(scenario.model.name == "llama-3.1-8b");
  CHECK(scenario.cluster.ranks() == 8);
  CHECK(scenario.strategy.sharding == Sharding::fsdp);
  CHECK(scenario.strategy.checkpointing == Checkpointing::full);
  CHECK(scenario.job.sequence == 8192);
  CHECK(scenario.job.micro_batch == 2);
  CHECK(scenario.job.accumulation == 1);
}

TEST_CASE("a model that the catalogue does not have is built from its widths", "[scenarios]") {
  const ExpressedRow made = express(changed("Llama-3.1-8B", "Nobody-8B"), catalog());
  REQUIRE(made.missing.empty());
  const Scenario scenario = parse_scenario(data, made.scenario, "r");
  CHECK(scenario.model.name == "Nobody-8B");
  CHECK(static_cast<double>(count_parameters(scenario.model).total()) ==
        Approx(8.03e9).epsilon(0.01));
}

TEST_CASE("a model is known by its name, whatever people add to it behind", "[scenarios]") {
  const auto known = [](std::string_view name) { return same_model(catalog(), name); };
  CHECK(known("Llama3.1-8B-Instruct") == "llama-3.1-8b");
  CHECK(known("meta-llama/Llama-3.1-8B") == "llama-3.1-8b");
  CHECK(known("DeepSeek V3 671B") == "deepseek-v3");
  CHECK(known("glm45_air_106b_a12b") == "glm-4.5-air");
  CHECK(known("Mistral-7B-v0.1") == "mistral-7b");
  CHECK(known("Qwen3-30B-A3B-Thinking-2507") == "qwen3-30b-a3b-instruct-2507");
  CHECK(known("Qwen3-30B-A3B-Instruct-2507") == "qwen3-30b-a3b-instruct-2507");
  CHECK(known("Phi-4-multimodal").empty());
  CHECK(known("Llama-3.1").empty());
  CHECK(known("").empty());
}

TEST_CASE("accumulation follows from the batch of the step", "[scenarios]") {
  const ExpressedRow made = express(changed(",2,1,16,", ",2,,64,"), catalog());
  REQUIRE(made.missing.empty());
  CHECK(parse_scenario(data, made.scenario, "r").job.accumulation == 4);
}

TEST_CASE("a part of a node takes part", "[scenarios]") {
  StepRow row = row_of(usual);
  row.gpus = row.shards = 2;
  row.global_batch = 4;
  const ExpressedRow made = express(row, catalog());
  REQUIRE(made.missing.empty());
  const Scenario scenario = parse_scenario(data, made.scenario, "r");
  CHECK(scenario.cluster.ranks() == 2);
  CHECK(scenario.cluster.node.count(PartKind::gpu) == 8);
}

TEST_CASE("a row of the same run tells what it leaves out, but nothing that was measured",
          "[scenarios]") {
  StepRow whole = row_of(usual), part;
  part.id = "ref-r";
  part.refers = "r";
  part.layers = 16;
  std::vector<StepRow> rows{part, whole};
  complete_references(rows);
  CHECK(rows.front().framework == whole.framework);
  CHECK(rows.front().hidden == whole.hidden);
  CHECK(rows.front().layers == Cell{16});
  CHECK_FALSE(rows.front().step);
  CHECK_FALSE(rows.front().memory);
  CHECK(rows.front().memory_unit.empty());
}

TEST_CASE("what two rows print of one run counts once", "[scenarios]") {
  StepRow whole = row_of(usual), again = row_of(usual);
  again.id = "ref-r";
  again.refers = "r";
  StepRow more = again;
  more.id = "ref-more";
  more.memory = 60;
  std::vector<StepRow> rows{again, more, whole};
  complete_references(rows);
  REQUIRE(rows.size() == 2);
  CHECK(rows.front().id == "ref-more");  // the other one says nothing new
  CHECK_FALSE(rows.front().step);
  CHECK(rows.front().memory == Cell{60});
  CHECK(rows.back().step == whole.step);
  // Of a run that no table has, all counts.
  rows = {again};
  complete_references(rows);
  REQUIRE(rows.size() == 1);
  CHECK(rows.front().step == whole.step);
}

TEST_CASE("compiled runs say so", "[scenarios]") {
  const auto compiled = [&](const ExpressedRow& row) {
    return parse_scenario(data, row.scenario, "r").strategy.compiled;
  };
  CHECK(compiled(express(changed("bf16,no", "bf16,yes"), catalog())));
  CHECK_FALSE(compiled(express(row_of(usual), catalog())));
}

TEST_CASE("what a row lacks is named", "[scenarios]") {
  const auto missing = [&](const std::string& from, const std::string& to) {
    const ExpressedRow made = express(changed(from, to), catalog());
    CHECK(made.scenario.empty());
    REQUIRE_FALSE(made.missing.empty());
    return made.missing.front();
  };
  CHECK(missing("H100-80GB", "TPU v5p") == "the hardware \"TPU v5p\"");
  CHECK(missing("torchtitan (FSDP2)", "MindSpeed") == "the framework \"MindSpeed\"");
  CHECK(missing(",8192,", ",,") == "the sequence length");
  CHECK(missing(",1,8,,", ",1,9,,") == "a node of 9 GPUs \"H100-80GB\"");
  CHECK(missing(",8192,", ",many,") == "seq_len: expected a number, found \"many\"");
}

TEST_CASE("an empty row lacks much and breaks nothing", "[scenarios]") {
  const ExpressedRow made = express(row_of("r,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,\n"), catalog());
  CHECK_FALSE(made.expressed());
  CHECK(made.missing.size() >= 4);
}

TEST_CASE("counts that make no sense are named or taken as one", "[scenarios]") {
  StepRow row = row_of(usual);
  row.framework = "Megatron-LM";
  row.strategy = "Megatron TP+PP";
  row.stage = 1;
  row.pipeline = 2;
  row.interleave = 0;
  const ExpressedRow none = express(row, catalog());
  REQUIRE(none.missing.empty());
  CHECK(parse_scenario(data, none.scenario, "r").strategy.pipeline_parallel.virtual_stages == 1);
  row.interleave = 1e12;
  CHECK_THAT(express(row, catalog()).missing.front(),
             Contains("a layer for each of 2000000000000 pieces"));
}

TEST_CASE("columns may be missing, but rows are called by their id", "[scenarios]") {
  CHECK(step_rows(parse_csv("id\nx\n", "r.csv")).front().id == "x");
  CHECK_THROWS_WITH(step_rows(parse_csv("name\nx\n", "r.csv")),
                    Contains("r.csv:1: id: the column is missing"));
}

TEST_CASE("what a source fixes of empty cells is filled in and said", "[scenarios]") {
  StepRow row = without_widths(row_of(usual));
  row.model = "gpt_oss_120b";
  row.framework = "Megatron-Bridge recipe";
  row.source = "examples/model_verification_cards/gpt-oss-120b/card.yaml";
  row.task = "pretrain";
  row.nodes = 8;
  row.gpus = 64;
  row.stage = 1;
  row.shards.reset();
  row.replicas.reset();
  row.pipeline.reset();
  row.tensor_parallel.reset();
  row.micro_batch.reset();
  row.accumulation.reset();
  row.global_batch.reset();
  row.sequence = 4096;
  row.checkpointing = "";
  const ExpressedRow made = express(row, catalog());
  CAPTURE(made.missing);
  REQUIRE(made.expressed());
  const Scenario scenario = parse_scenario(data, made.scenario, "r");
  CHECK(scenario.strategy.pipeline_parallel.size == 4);
  CHECK(scenario.strategy.tensor_parallel.size == 2);
  CHECK(scenario.strategy.experts.parallel == 16);
  CHECK(scenario.job.accumulation == 64);
  CHECK(std::ranges::count(made.assumed, "as Megatron-Bridge's recipes have it: ep 16") == 1);
  row.expert_parallel = 8;  // what a row says stands
  CHECK(parse_scenario(data, express(row, catalog()).scenario, "r").strategy.experts.parallel == 8);
}

TEST_CASE("what a release's own code has otherwise is put right and said", "[scenarios]") {
  StepRow row = without_widths(row_of(usual));
  row.model = "GPT OSS 120B";
  row.framework = "Megatron-Bridge / Megatron-Core";
  row.source = "docs/performance-summary-archive.md (25.11)";
  row.nodes = 8;
  row.gpus = 64;
  row.stage = 1;
  row.shards.reset();
  row.replicas.reset();
  row.pipeline = 4;
  row.tensor_parallel = 1;
  row.expert_parallel = 8;
  row.micro_batch = 4;
  row.accumulation = 8;
  row.global_batch = 512;
  row.sequence = 4096;
  const auto batch = [&] {
    const ExpressedRow made = express(row, catalog());
    CAPTURE(made.missing);
    REQUIRE(made.expressed());
    const Scenario scenario = parse_scenario(data, made.scenario, "r");
    const bool said = std::ranges::count(
        made.assumed,
        "as Megatron-Bridge's recipes of release 25.11 have it: micro_batch 1, where the row says "
        "4");
    return std::tuple(scenario.job.micro_batch, scenario.job.accumulation, said);
  };
  CHECK(batch() == std::tuple(1, 32, true));
  row.source = "docs/performance-summary-archive.md (26.02)";
  CHECK(batch() == std::tuple(4, 8, false));
  const Document bare =
      parse_document("name: r\ntitle: t\ncorrects: {cells: {tp: 1}}\n", "recipe.yaml");
  CHECK_THROWS_WITH(
      [&] {
        read_recipe(bare.root());
        bare.finish();
      }(),
      Contains("source"));
}

TEST_CASE("a framework on other GPUs is another stack", "[scenarios]") {
  StepRow row = row_of(usual);
  row.framework = "axolotl + DeepSpeed (HF)";
  row.strategy = "ZeRO-3";
  CHECK(express(row, catalog()).stack == "deepspeed-hf");
  row.hardware = "MI300X-192GB";
  row.gpu_memory.reset();
  CHECK(express(row, catalog()).stack == "axolotl-liger-rocm");
}

TEST_CASE("other names of a model, and remarks behind it, are that model", "[scenarios]") {
  CHECK(same_model(catalog(), "Nemotron V3 Nano 30B-A3B") == "nemotron-3-nano-30b-a3b");
  CHECK(same_model(catalog(), "Nemotron-3-Nano-30B-A3B (hybrid Mamba MoE)") ==
        "nemotron-3-nano-30b-a3b");
  CHECK(same_model(catalog(), "Nemotron V3 Super 120B-A12B").empty());
  CHECK(same_model(catalog(), "deepseekv3 (truncated)").empty());
  CHECK(same_model(catalog(), "DeepSeek-V3 (4 layers)").empty());
}
