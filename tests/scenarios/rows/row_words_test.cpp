// Cells say the same in many words, and sometimes they say no.
#include "scenarios/rows/row_words.hpp"

#include "scenarios/read/scenario_reader.hpp"
#include "scenarios/rows/expressed_row.hpp"
#include "tests/support/catch.hpp"

using namespace stepsim;
using Catch::Contains;

namespace {

const std::string data = STEPSIM_SOURCE_DATA;

// Eight H100 with Llama 3.1 8B under ZeRO-3.
StepRow usual() {
  StepRow row;
  row.id = "r";
  row.hardware = "H100-80GB SXM";
  row.framework = "DeepSpeed + HF";
  row.model = "Llama-3.1-8B";
  row.strategy = "ZeRO-3";
  row.checkpointing = "none";
  row.precision = "bf16";
  row.nodes = 1;
  row.gpus = 8;
  row.stage = 3;
  row.sequence = 4096;
  row.micro_batch = 1;
  row.accumulation = 1;
  return row;
}

ExpressedRow expressed(const StepRow& row) {
  static const RowCatalog catalog = row_catalog(data);
  return express(row, catalog);
}

Strategy strategy_of(const StepRow& row) {
  const ExpressedRow made = expressed(row);
  CAPTURE(made.missing);
  REQUIRE(made.expressed());
  return parse_scenario(data, made.scenario, "r").strategy;
}

Strategy with(std::string StepRow::*cell, const std::string& word) {
  StepRow row = usual();
  row.*cell = word;
  CAPTURE(word);
  return strategy_of(row);
}

}  // namespace

TEST_CASE("a word that is denied is not said", "[scenarios]") {
  CHECK(says("te cuda graphs", "cuda graph"));
  CHECK_FALSE(says("no cuda graph on router", "cuda graph"));
  CHECK(says("no liger kernels; liger loss", "liger"));
  CHECK_FALSE(says("without liger", "liger"));
  for (const char* no : {"no", "none", "off", "false", "-", "n/a", "no (eager)", "not stated"})
    CHECK(says_no(no));
  CHECK_FALSE(says_no("nodes share it"));
}

TEST_CASE("compiled is what a row does not deny", "[scenarios]") {
  for (const char* no : {"", "no", "none", "off", "false", "-", "n/a", "eager", "no (eager)"})
    CHECK_FALSE(with(&StepRow::compile, no).compiled);
  for (const char* yes : {"yes", "torch.compile", "max-autotune"})
    CHECK(with(&StepRow::compile, yes).compiled);
}

TEST_CASE("recomputation has many names", "[scenarios]") {
  for (const char* full :
       {"full", "yes", "recompute", "gradient checkpointing", "AC", "full block 32"})
    CHECK(with(&StepRow::checkpointing, full).checkpointing == Checkpointing::full);
  for (const char* none : {"none", "no", "off", "selective: none"})
    CHECK(with(&StepRow::checkpointing, none).checkpointing == Checkpointing::none);
  CHECK(with(&StepRow::checkpointing, "every 3rd layer").checkpoint_every == 3);
  CHECK(with(&StepRow::checkpointing, "selective, every second layer").checkpoint_every == 2);
  CHECK(with(&StepRow::checkpointing, "selective 1/4").checkpoint_every == 4);
  CHECK(with(&StepRow::checkpointing, "block 8").checkpoint_every == 4);  // of 32
}

TEST_CASE("what goes to the host is what the cell names", "[scenarios]") {
  const Strategy checkpoints = with(&StepRow::checkpointing, "full (offloaded to CPU)");
  CHECK(checkpoints.activation_place == Offload::cpu);
  CHECK(checkpoints.optimizer_place == Offload::none);
  for (const char* none : {"none", "no CPU offload", "none (CPU offload disabled)"})
    CHECK(with(&StepRow::offload, none).optimizer_place == Offload::none);
  for (const char* host : {"optimizer->host", "optimizer -> CPU", "DRAM"})
    CHECK(with(&StepRow::offload, host).optimizer_place == Offload::cpu);
  CHECK(with(&StepRow::strategy, "ZeRO-3, ZeRO-Offload").optimizer_place == Offload::cpu);
  CHECK(with(&StepRow::optimizer, "DeepSpeed CPU-Adam").optimizer_place == Offload::cpu);
  CHECK(with(&StepRow::offload, "params + optimizer -> CPU").parameter_place == Offload::cpu);
}

TEST_CASE("precisions, optimizers and schedules that are not modelled are named", "[scenarios]") {
  const auto lacks = [](std::string StepRow::*cell, const std::string& word) {
    StepRow row = usual();
    row.*cell = word;
    CAPTURE(word);
    const ExpressedRow made = expressed(row);
    REQUIRE_FALSE(made.missing.empty());
    CHECK_THAT(made.missing.front(), Contains(word));
  };
  for (const char* word : {"int8", "fp6", "fp32", "tf32"}) lacks(&StepRow::precision, word);
  for (const char* word : {"Adafactor", "SGD", "Lion"}) lacks(&StepRow::optimizer, word);
  for (const char* word : {"ZeRO-3, ZeRO++", "MiCS"}) lacks(&StepRow::strategy, word);
  lacks(&StepRow::task, "reward model");
  CHECK(expressed(usual()).missing.empty());
}

TEST_CASE("pairs and whole matrices are words of a scenario", "[scenarios]") {
  StepRow row = usual();
  row.task = "dpo (pairs)";
  row.optimizer = "MuonH";
  const Scenario scenario = parse_scenario(data, expressed(row).scenario, "r");
  CHECK(scenario.job.method == Method::dpo);
  CHECK(scenario.strategy.optimizer.name == "muon");
}

TEST_CASE("shards that are fewer than ranks leave copies", "[scenarios]") {
  StepRow row = usual();
  row.framework = "torchtitan (FSDP2)";
  row.strategy = "FSDP2";
  row.nodes = 8;
  row.gpus = 64;
  row.shards = 8;
  CHECK(strategy_of(row).sharding == Sharding::hsdp);
  CHECK(strategy_of(row).fsdp.replicate == 8);
  row.shards.reset();
  CHECK(strategy_of(row).sharding == Sharding::fsdp);
  row.strategy = "HSDP";
  CHECK(strategy_of(row).fsdp.replicate == 8);  // a copy on each node
  row.shards = 24;
  CHECK_THAT(expressed(row).missing.front(), Contains("64 ranks do that 24 share"));
  row.shards.reset();
  row.strategy = "FSDP NO_SHARD";
  CHECK(strategy_of(row).sharding == Sharding::zero0);
  CHECK(strategy_of(row).master_weights);
}

TEST_CASE("parts of a batch that contradict each other are named", "[scenarios]") {
  StepRow row = usual();
  row.micro_batch = 2;
  row.accumulation = 1;
  row.global_batch = 64;
  CHECK_THAT(expressed(row).missing.front(), Contains("64 rows over 8 copies with micro-batch 2"));
  row.accumulation.reset();
  CHECK(parse_scenario(data, expressed(row).scenario, "r").job.accumulation == 4);
}

TEST_CASE("a model that was cut down has the widths of its row", "[scenarios]") {
  StepRow row = usual();
  row.layers = 16;
  row.hidden = 4096;
  row.heads = 32;
  row.kv_heads = 8;
  row.ffn = 14336;
  row.vocabulary = 128256;
  CHECK(parse_scenario(data, expressed(row).scenario, "r").model.layers == 16);
  row.layers = 32;
  CHECK(parse_scenario(data, expressed(row).scenario, "r").model.name == "llama-3.1-8b");
}

TEST_CASE("adapters have the rank that a row says", "[scenarios]") {
  StepRow row = usual();
  row.task = "lora";
  for (const char* note : {"LoRA r64", "LoRA rank 64", "r=64"}) {
    row.notes = note;
    CHECK(strategy_of(row).lora.rank == 64);
  }
}

TEST_CASE("a row's precision is that of the catalogue whose words are the longest", "[scenarios]") {
  const auto named = [](const std::string& word) {
    return with(&StepRow::precision, word).precision.name;
  };
  CHECK(named("bf16") == "bf16");
  CHECK(named("FP8") == "fp8-current");
  CHECK(named("FP8 hybrid") == "fp8-delayed");
  CHECK(named("fp8 block") == "fp8-blockwise");
  CHECK(named("bf16+float8 linear") == "fp8-tensorwise");
  CHECK(named("float8 rowwise") == "fp8-rowwise");
}
