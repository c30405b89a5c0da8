#include <algorithm>

#include "scenarios/rows/expressed_row.hpp"
#include "scenarios/scenario.hpp"
#include "sim/base/config.hpp"
#include "sim/base/error.hpp"
#include "tests/support/catch.hpp"

using namespace stepsim;
using Catch::Matchers::Contains;

namespace {

const std::string data = STEPSIM_SOURCE_DATA;

constexpr std::string_view columns =
    "id,hardware,nodes,gpus,interconnect,framework,model,params_total_B,layers,hidden,heads,kv_"
    "heads,"
    "ffn,vocab,seq_len,strategy,zero_stage,dp_shard,dp_replicate,tp,pp,offload,act_ckpt,precision,"
    "compile,micro_batch,grad_accum,global_batch_seqs,tok_s_gpu,step_s,mfu_pct,flops_def,mem_GB,"
    "mem_unit\n";
constexpr std::string_view usual =
    "r,H100-80GB,1,8,,torchtitan "
    "(FSDP2),Llama-3.1-8B,8.03,32,4096,32,8,14336,128256,8192,FSDP2,3,8,1,"
    "1,1,none,full,bf16,no,2,1,16,5762,2.84,33,,70,GiB\n";

StepRow row_of(std::string_view line) {
  const auto rows = step_rows(parse_csv(std::string(columns) + std::string(line), "r.csv"));
  REQUIRE(rows.size() == 1);
  return rows.front();
}

StepRow changed(const std::string& from, const std::string& to) {
  std::string line(usual);
  const std::size_t place = line.find(from);
  REQUIRE(place != std::string::npos);
  return row_of(line.replace(place, from.size(), to));
}

StepRow without_widths(StepRow row) {
  row.layers.reset();
  row.hidden.reset();
  return row;
}

const RowCatalog& catalog() {
  static const RowCatalog all = row_catalog(data);
  return all;
}

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

TEST_CASE("columns may be missing, but rows are called by their id", "[scenarios]") {
  CHECK(step_rows(parse_csv("id\nx\n", "r.csv")).front().id == "x");
  CHECK_THROWS_WITH(step_rows(parse_csv("name\nx\n", "r.csv")),
                    Contains("r.csv:1: id: the column is missing"));
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
