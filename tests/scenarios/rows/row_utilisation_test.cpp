// What of a row is counted: utilisation, recomputation, memory.
#include "scenarios/read/scenario_reader.hpp"
#include "scenarios/rows/expressed_row.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/step_rows.hpp"

using namespace stepsim;
using Catch::Contains;

namespace {

const std::string data = STEPSIM_SOURCE_DATA;

}  // namespace

TEST_CASE("what is computed again is said as each framework means it", "[scenarios]") {
  const auto text = [&](const std::string& word, const std::string& framework) {
    StepRow row = row_of(usual);
    row.checkpointing = word;
    row.framework = framework;
    return express(row, catalog()).scenario;
  };
  CHECK_THAT(text("selective", "torchtitan"), Contains("checkpointing: operators"));
  CHECK_THAT(text("selective", "Megatron-LM"), Contains("checkpointing: selective"));
  CHECK_THAT(text("selective layer", "torchtitan"), Contains("checkpoint_every: 2"));
  CHECK_THAT(text("full + CPU offload of checkpoints", "prime-rl"), Contains("activations: cpu"));
}

TEST_CASE("what a row leaves open is what its framework's recipe has", "[scenarios]") {
  const auto row = [&](const std::string& checkpointing) {
    StepRow made = without_widths(row_of(usual));
    made.framework = "Megatron-Bridge recipe";
    made.model = "gpt-oss-120b";
    made.source = "docs/performance-summary.md";
    made.stage = 1;
    made.expert_parallel = 8;
    made.checkpointing = checkpointing;
    return express(made, catalog());
  };
  const auto strategy = [&](const ExpressedRow& made) {
    return parse_scenario(data, made.scenario, "r").strategy;
  };
  CHECK_THAT(row("").scenario, Contains("- bridge-gpt-oss-120b-h100\n"));
  CHECK_THAT(row("").scenario, !Contains("recompute_modules"));  // what is a recipe's stays there
  CHECK(strategy(row("")).recomputed.has(LayerPart::moe_act));
  CHECK_THAT(row("").assumed.front(),
             Contains("as Megatron-Bridge's recipes have it: strategy.checkpointing: selective; "
                      "strategy.recompute_modules: [layernorm, moe_act]"));
  CHECK(strategy(row("none")).checkpointing == Checkpointing::none);  // the row's word stands
  StepRow azure = row_of(usual);
  azure.framework = "Megatron-DeepSpeed";
  azure.strategy = "ZeRO-3 data parallel";
  azure.source = "docs/_posts/2022-07-26-deepspeed-azure.md";
  CHECK_THAT(express(azure, catalog()).scenario, Contains("recipe: azure-2022\n"));
  CHECK(strategy(express(azure, catalog())).zero.stops_at_fetches);
  CHECK_THAT(express(azure, catalog()).assumed.front(), Contains("release is inferred"));
  azure.model = "1T";
  CHECK_THAT(express(azure, catalog()).scenario,
             Contains("recipe:\n  - azure-2022\n  - azure-2022-1t\n"));
  // The page says once what it means by "selective".
  StepRow other = row_of(usual);
  other.framework = "Megatron-LM";
  other.source = "docs/en/benchmark/megatron_moe_benchmark.md";
  other.checkpointing = "selective";
  CHECK(strategy(express(other, catalog())).recomputed.has(LayerPart::moe_act));
  other.checkpointing = "full";
  CHECK(strategy(express(other, catalog())).checkpointing == Checkpointing::full);
}

TEST_CASE("a row that does not say what was computed again offers more of it", "[scenarios]") {
  StepRow row = row_of(usual);
  row.framework = "Megatron-LM";
  row.strategy = "Megatron DP (distributed optimizer)";
  row.stage = 1;
  CHECK(express(row, catalog()).lighter.empty());  // it says "full"
  row.checkpointing = "";
  const ExpressedRow made = express(row, catalog());
  CHECK_THAT(made.scenario, Contains("checkpointing: none"));
  REQUIRE(made.lighter.size() == 1);
  CHECK_THAT(made.lighter.front().scenario, Contains("checkpointing: full"));
}

TEST_CASE("utilisation with and without recomputation says how many layers were recomputed",
          "[scenarios]") {
  StepRow row = row_of(usual);
  row.checkpointing = "selective";
  row.framework = "fms-fsdp (PyTorch FSDP1)";
  const auto every = [&](double mfu, double hfu) {
    row.mfu = mfu;
    row.hfu = hfu;
    return parse_scenario(data, express(row, catalog()).scenario, "r").strategy.checkpoint_every;
  };
  CHECK(every(45, 60) == Approx(1));  // four thirds: all of them
  CHECK(every(54, 60) == Approx(3).epsilon(0.01));
  CHECK(every(51, 51) == Approx(2));  // says nothing
}

TEST_CASE("a batch that is left out follows from a utilisation that is counted", "[scenarios]") {
  StepRow row = row_of(usual);
  row.accumulation = row.global_batch = row.tokens_per_gpu = std::nullopt;
  row.flops_definition = "TT";
  const double tokens = 2 * 16 * 8192;  // of a step
  row.step = 3;
  row.mfu = 100 * tokens * counted_flops_per_token(row) / (3 * 8 * counted_peak(row, catalog()));
  const Scenario made = parse_scenario(data, express(row, catalog()).scenario, "r");
  CHECK(made.job.micro_batch * made.job.accumulation * 8 == 32);
  // How it is cut up does not follow.
  row.micro_batch = std::nullopt;
  CHECK(express(row, catalog()).missing == std::vector<std::string>{"the micro-batch"});
}

TEST_CASE("utilisation is counted as its source does", "[scenarios]") {
  StepRow row = row_of(usual);
  row.flops_definition = "MPT";
  CHECK(counted_flops_per_token(row) == Approx(6 * 8.03e9 + 12.0 * 32 * 4096 * 8192));
  row.flops_definition = "a formula of our own";
  CHECK(counted_flops_per_token(row) == 0);
  CHECK(counted_peak(row, catalog()) == 989e12);
}

TEST_CASE("a figure of memory counts what the row says, else what the log of the stack counts",
          "[scenarios]") {
  StepRow row = row_of(usual);
  const Stack::MemoryLog decimal{MemoryKind::reserved, false}, binary{MemoryKind::reserved, true};
  row.memory = 70;
  const auto counts = [&](const char* unit) {
    row.memory_unit = unit;
    return measured_kind(row, decimal);
  };
  CHECK(counts("GiB allocated peak") == MemoryKind::allocated);
  CHECK(counts("GB, nvidia-smi style") == MemoryKind::device);
  CHECK(counts("GiB (reserved or allocated, not stated)") == MemoryKind::reserved);
  CHECK(counts("GB (torch peak)") == MemoryKind::reserved);
  CHECK(measured_memory(row, decimal) == 70e9);
  CHECK(measured_memory(row, binary) == 70 * 0x1p30);
  row.memory_unit = "GiB";
  CHECK(measured_memory(row, decimal) == 70 * 0x1p30);
  // What the device's tool shows is not in the units of the framework's log.
  CHECK(counts("GB as shown by the device tool") == MemoryKind::device);
  CHECK(measured_memory(row, binary) == 70e9);
  CHECK(counts("GB, kind not stated") == MemoryKind::unsaid);
  CHECK(measured_memory(row, binary) == 70e9);
  CHECK(counts("GB (W&B, kind not stated)") == MemoryKind::reserved);
  CHECK(measured_memory(row, binary) == 70 * 0x1p30);
}

TEST_CASE("heads of scripts and full cards say what was enough", "[scenarios]") {
  StepRow row = row_of(usual);
  row.memory = 70;
  row.gpu_memory = 80;
  CHECK_FALSE(memory_is_bound(row));
  row.memory_unit = "GiB per GPU (script header)";
  CHECK(memory_is_bound(row));
  row.memory_unit = "GiB per GPU";
  row.memory = 80;
  CHECK(memory_is_bound(row));
}
