// How rows divide a model: stages, tensors, experts, what waits on the host.
#include "scenarios/read/scenario_reader.hpp"
#include "scenarios/rows/expressed_row.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/step_rows.hpp"

using namespace stepsim;
using Catch::Contains;

namespace {

const std::string data = STEPSIM_SOURCE_DATA;

}  // namespace

TEST_CASE("parallel parts that take all GPUs leave nothing to shard", "[scenarios]") {
  StepRow row = changed("FSDP2,3,8,1,1,1", "TP8,,,,8,1");
  row.framework = "Megatron-DeepSpeed";
  row.global_batch = 2;
  const ExpressedRow alone = express(row, catalog());
  REQUIRE(alone.missing.empty());
  const Strategy strategy = parse_scenario(data, alone.scenario, "r").strategy;
  CHECK(strategy.sharding == Sharding::zero0);
  CHECK(strategy.master_weights);
  row.tensor_parallel = 4;
  row.global_batch = 4;
  CHECK_THAT(express(row, catalog()).missing.front(), Contains("the sharding \"TP8\""));
}

TEST_CASE("a stage of an interleaved pipeline has the pieces that its framework gives it",
          "[scenarios]") {
  StepRow row = row_of(usual);
  row.strategy = "FSDP2+PP (interleaved)";
  row.pipeline = 4;
  row.shards = 2;
  row.micro_batch = 4;
  row.global_batch = 8;
  const ExpressedRow made = express(row, catalog());
  REQUIRE(made.missing.empty());
  const Strategy strategy = parse_scenario(data, made.scenario, "r").strategy;
  CHECK(strategy.pipeline_parallel.schedule == PipelineSchedule::interleaved);
  CHECK(strategy.pipeline_parallel.virtual_stages == 2);
}

TEST_CASE("words of a row name the schedule of its stages", "[scenarios]") {
  StepRow row = row_of(usual);
  row.framework = "Megatron-LM";
  row.stage = 1;
  row.pipeline = 4;
  row.accumulation.reset();
  row.global_batch = 64;  // 16 micro-batches of 2 in each of two pipelines
  using enum PipelineSchedule;
  for (const auto& [words, schedule] : std::vector<std::pair<std::string, PipelineSchedule>>{
           {"PP4", one_forward_one_backward},
           {"PP4, schedule 1F1B", one_forward_one_backward},
           {"PP4, GPipe", gpipe},
           {"PP4, ZB1P", zb_h1},
           {"PP4, zero bubble", zb_h1},
           {"PP4, schedule V-half", v_half},
           {"PP4, schedule V-min", v_min},
           {"PP4, ZBV", zbv},
           {"PP4, DualPipe", dualpipe},
           {"PP4, DualPipeV", dualpipe_v}}) {
    CAPTURE(words);
    row.strategy = words;
    const ExpressedRow made = express(row, catalog());
    REQUIRE(made.missing.empty());
    const PipelineParallel read =
        parse_scenario(data, made.scenario, "r").strategy.pipeline_parallel;
    CHECK(read.schedule == schedule);
    CHECK(read.virtual_stages == (read.way() == PipelineWay::there_and_back ? 2 : 1));
  }
  row.strategy = "PP4, schedule 2F2B";
  CHECK(express(row, catalog()).missing.front() == "the schedule of \"PP4, schedule 2F2B\"");
}

TEST_CASE("experts and adapters of a row are those that its framework usually has", "[scenarios]") {
  StepRow row = without_widths(row_of(usual));
  row.model = "Qwen3-30B-A3B";
  const auto scenario = [&] {
    const ExpressedRow made = express(row, catalog());
    CAPTURE(made.missing);
    REQUIRE(made.expressed());
    return parse_scenario(data, made.scenario, "r");
  };
  row.expert_parallel = 4;
  CHECK(scenario().strategy.experts.kernel == MoeKernel::grouped);
  CHECK(scenario().strategy.experts.parallel == 4);
  CHECK(scenario().strategy.experts.skew == 0.5);
  const auto ranged = scenario().constants;
  CHECK(std::any_of(ranged.begin(), ranged.end(), [](const NamedConstant& constant) {
    return constant.name == "scenario.strategy.moe.skew" && constant.low < constant.high;
  }));
  row.notes = "force-balanced expert routing";
  CHECK(scenario().strategy.experts.skew == 0);
  row.expert_parallel.reset();
  row.framework = "KempnerForge";
  CHECK(scenario().strategy.experts.kernel == MoeKernel::padded);
  row.framework = "NeMo AutoModel (FSDP2 + DeepEP)";
  CHECK(scenario().strategy.experts.parallel == 8);
  row.framework = "prime-rl";
  row.task = "rl-lora";
  row.notes = "LoRA r32";
  CHECK(scenario().strategy.lora.rank == 32);
  CHECK(scenario().strategy.lora.targets == LoraTargets::all);
  row.notes = "";
  CHECK(scenario().strategy.lora.rank == 16);
  row.framework = "Megatron-Core";
  CHECK_FALSE(express(row, catalog()).expressed());  // over how many GPUs?
}

TEST_CASE("an exchange overlaps where a row says so", "[scenarios]") {
  StepRow row = without_widths(row_of(usual));
  row.model = "Qwen3-30B-A3B";
  row.framework = "Megatron-Core";
  row.strategy = "Megatron DP + EP";
  row.stage = 1;
  row.expert_parallel = 8;
  row.checkpointing = "none";
  const auto experts = [&](const std::string& notes) {
    row.notes = notes;
    return parse_scenario(data, express(row, catalog()).scenario, "r").strategy.experts;
  };
  CHECK(experts("HybridEP, 1F1B overlap, delay_wgrad").overlaps);
  CHECK(experts("HybridEP, 1F1B overlap, delay_wgrad").delays_weights);
  CHECK(experts("HybridEP").dispatcher == Dispatcher::hybridep);
  for (const char* notes : {"EP overlap off", "no EP overlap", "A2A_OVERLAP=0", "DeepEP"})
    CHECK_FALSE(experts(notes).overlaps);
}

TEST_CASE("a row of KempnerForge says what its code divides and what it repeats", "[scenarios]") {
  StepRow row = row_of(usual);
  row.framework = "KempnerForge (FSDP2)";
  row.shards = 2;
  row.tensor_parallel = 4;
  row.global_batch = 4;
  const auto strategy = [&] {
    const ExpressedRow made = express(row, catalog());
    CAPTURE(made.missing);
    REQUIRE(made.expressed());
    return parse_scenario(data, made.scenario, "r").strategy;
  };
  CHECK(strategy().tensor_parallel.sequence);
  CHECK(strategy().tensor_parallel.gathers_logits);
  CHECK_FALSE(strategy().tensor_parallel.divides_embedding);
  CHECK(strategy().fsdp.reshard_root);
  // Stages have the whole head, and reshard like everything else.
  row.shards = 1;
  row.pipeline = 2;
  row.global_batch = 8;
  CHECK_FALSE(strategy().tensor_parallel.sequence);
  CHECK_FALSE(strategy().tensor_parallel.divides_head);
  CHECK(strategy().fsdp.reshard_after_forward);
  // On one GPU it leaves FSDP out, which a row of another stack does not say.
  StepRow alone = row_of(usual);
  alone.gpus = alone.shards = 1;
  alone.global_batch = 2;
  const auto sharding = [&](const std::string& framework) {
    alone.framework = framework;
    const ExpressedRow made = express(alone, catalog());
    CHECK_THAT(made.scenario, !Contains("zero:"));
    return parse_scenario(data, made.scenario, "r").strategy.sharding;
  };
  CHECK(sharding("KempnerForge (FSDP2)") == Sharding::zero0);
  CHECK(sharding("torchtitan (FSDP2)") == Sharding::fsdp);
  // Ranks with different experts are no part of those that hold different rows.
  row.pipeline = 1;
  row.tensor_parallel = 2;
  row.shards = 2;
  row.model = "Qwen3-30B-A3B";
  row.expert_parallel = 2;
  row.global_batch = 4;
  CHECK(strategy().experts.same_rows);
  CHECK(strategy().experts.tensor == 1);
  row.expert_parallel.reset();
  row.shards = 4;
  row.global_batch = 8;
  CHECK_FALSE(strategy().experts.same_rows);
}

TEST_CASE("a part of the optimizer on the host is what a row says in per cent", "[scenarios]") {
  const auto row = [](std::string_view stage, std::string_view offload) {
    return express(row_of(std::string("r,H100-80GB,1,8,,DeepSpeed,Llama-3.1-8B,8.03,32,4096,32,8,"
                                      "14336,128256,8192,ZeRO-") +
                          std::string(stage) + "," + std::string(stage) + ",8,1,1,1," +
                          std::string(offload) + ",full,bf16,no,2,1,16,5762,2.84,33,,70,GiB\n"),
                   catalog());
  };
  const ExpressedRow half = row("3", "optimizer states 50% -> CPU");
  REQUIRE(half.missing.empty());
  CHECK(parse_scenario(data, half.scenario, "r").strategy.offload.ratio == 0.5);
  const ExpressedRow all = row("3", "optimizer states -> CPU");
  CHECK(parse_scenario(data, all.scenario, "r").strategy.offload.ratio == 1);
  const ExpressedRow below = row("2", "optimizer states 37.5 % -> CPU");
  REQUIRE(below.missing.empty());
  CHECK(parse_scenario(data, below.scenario, "r").strategy.offload.ratio == 0.375);
}
