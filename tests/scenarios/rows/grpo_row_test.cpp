// Rows of published GRPO steps and engine throughputs: what becomes of them, and what cannot.
#include "scenarios/rows/grpo_row.hpp"

#include <cmath>

#include "scenarios/load/load_scenario.hpp"
#include "scenarios/read/scenario_reader.hpp"
#include "scenarios/rows/engine_row.hpp"
#include "sim/base/error.hpp"
#include "tests/support/catch.hpp"
#include "workloads/grpo/lengths.hpp"
#include "workloads/grpo/placement.hpp"

using namespace stepsim;

namespace {

const std::string data = STEPSIM_SOURCE_DATA;

const RowCatalog& catalog() {
  static const RowCatalog all = row_catalog(data);
  return all;
}

// NeMo-RL 0.4, Llama-3.1-8B on two DGX H100.
constexpr std::string_view columns =
    "id,hardware,nodes,gpus,framework,model,algorithm,policy_mode,max_seq,avg_seq,gen_batch,"
    "train_batch,samples_per_prompt,gen_tp,train_tp,train_ep,train_pp,tok_s_gpu,step_s\n";
constexpr std::string_view usual =
    "r,H100-80GB (DGX),2,16,\"NeMo-RL (Megatron train, vLLM generate)\",Llama-3.1-8B,GRPO,On "
    "policy,4096,1060,2048,512,32,1,1,1,1,1562,97.7\n";

ExpressedRow made_of(std::string line, std::string_view from = "", std::string_view to = "") {
  if (!from.empty()) line.replace(line.find(from), from.size(), to);
  const CsvTable table = parse_csv(std::string(columns) + line, "r.csv");
  CHECK(holds_grpo_rows(table));
  return express(grpo_rows(table).front(), catalog());
}

Scenario loaded(const ExpressedRow& made) {
  INFO(made.scenario);
  REQUIRE(made.missing.empty());
  return parse_scenario(data, made.scenario, "r");
}

ExpressedEngineRow engine_of(std::string_view line, const std::string& more_columns = "") {
  const CsvTable table = parse_csv(
      "id,hardware,gpus,model,dtype,engine,tp,input_len,output_len,num_prompts,max_concurrency,"
      "total_tok_s,output_tok_s,request_s,notes" +
          more_columns + "\n" + std::string(line),
      "e.csv");
  CHECK(holds_engine_rows(table));
  CHECK_FALSE(holds_grpo_rows(table));
  return express(engine_rows(table).front(), catalog());
}

}  // namespace

TEST_CASE("a step in turn becomes a colocated scenario", "[grpo]") {
  const ExpressedRow made = made_of(std::string(usual));
  CHECK(made.family == "grpo in turn h100-sxm");
  const Scenario scenario = loaded(made);
  REQUIRE(scenario.grpo);
  CHECK(scenario.grpo->layout == GrpoLayout::colocated);
  CHECK(scenario.grpo->responses() == 2048);
  CHECK(scenario.grpo->mini_batches == 4);
  CHECK(scenario.grpo->model_length() == 4096);
  // Of what is left of the responses behind the limit.
  CHECK(mean_response(*scenario.grpo) == Approx(1060 - 256).epsilon(0.01));
  CHECK(scenario.stack.name == "megatron");
}

// What is trained is prompts and responses: a rate over both leaves the prompts beside a mean that
// is of responses alone.
TEST_CASE("prompts of a row are what its rate leaves beside the mean response", "[grpo]") {
  const CsvTable table = parse_csv(
      "id,hardware,nodes,gpus,framework,model,algorithm,max_seq,avg_seq,gen_batch,tok_s_gpu,step_s,"
      "notes\nr,H100-80GB (DGX),2,16,NeMo-RL "
      "v0.4,Llama-3.1-8B,GRPO,4096,1060,2048,1562,97.7,avg_seq "
      "is mean response length\n",
      "r.csv");
  const Scenario scenario = loaded(express(grpo_rows(table).front(), catalog()));
  CHECK(mean_response(*scenario.grpo) == Approx(1060).epsilon(0.01));
  CHECK(scenario.grpo->prompt_tokens == std::llround(1562 * 16 * 97.7 / 2048 - 1060));
  CHECK(scenario.grpo->model_length() == 4096);
}

TEST_CASE("recipes of NeMo-RL say which models recompute layers", "[grpo]") {
  const auto learners = [](std::string_view model) {
    return loaded(made_of(std::string(usual), "Llama-3.1-8B", model)).strategy.checkpointing;
  };
  CHECK(learners("Llama-3.1-8B") == Checkpointing::full);
  CHECK(learners("Qwen3-30B-A3B") == Checkpointing::none);
}

TEST_CASE("a step off the policy becomes separate learners and engines", "[grpo]") {
  const Scenario scenario = loaded(made_of(std::string(usual), "On policy", "1-step Off"));
  CHECK(scenario.grpo->layout == GrpoLayout::separate);
  CHECK(scenario.grpo->learners == std::vector<std::uint32_t>{8, 0});
  CHECK(scenario.grpo->async_steps == 1);
}

TEST_CASE("learners of a row may split their layers", "[grpo]") {
  const Scenario scenario = loaded(made_of(std::string(usual), ",32,1,1,1,1,", ",32,2,4,1,1,"));
  CHECK(scenario.grpo->tensor_parallel == 2);
  CHECK(scenario.strategy.tensor_parallel.size == 4);
}

TEST_CASE("learners of a row stand in stages, as a column or NeMo-RL's list says", "[grpo]") {
  const auto stages = [](std::string_view line) {
    const CsvTable table = parse_csv(std::string(line), "r.csv");
    return loaded(express(grpo_rows(table).front(), catalog())).strategy.pipeline_parallel.size;
  };
  CHECK(loaded(made_of(std::string(usual), ",1,1,1,1562", ",1,1,8,1562"))
            .strategy.pipeline_parallel.size == 8);
  constexpr std::string_view head =
      "id,hardware,nodes,gpus,framework,model,algorithm,max_seq,avg_seq,gen_batch,train_strategy,"
      "step_s\nr,H100-80GB (DGX),2,16,NeMo-RL v0.4,Llama-3.1-8B,GRPO,4096,1060,2048,";
  CHECK(stages(std::string(head) + "\"Megatron; [1,1,1,1,1,2,n/a]\",97.7\n") == 2);
  CHECK(stages(std::string(head) + "\"Megatron; [1,1,1,1,2,n/a]\",97.7\n") == 1);
}

TEST_CASE("a row's framework says how it runs a step", "[grpo]") {
  const auto made = [](std::string_view framework, std::string_view batch) {
    std::string line(usual);
    line.replace(line.find("NeMo-RL (Mega"), 7, framework);
    line.replace(line.find("512"), 3, batch);
    return *loaded(made_of(line)).grpo;
  };
  const Grpo nemo = made("NeMo-RL v0.4", "512"), verl = made("verl", "512"),
             other = made("Relax with SGLang", "2048");
  CHECK(nemo.swap_reference);
  CHECK(nemo.park_memory == ParkMemory::pageable);
  CHECK(nemo.memory_utilization == 0.6);
  CHECK(verl.memory_utilization == 0.5);
  CHECK(!verl.swap_reference);
  CHECK(other.memory_utilization == 0.7);
  CHECK(!other.scores());
  // Its later recipes update once, and need no log-probabilities of the policy.
  CHECK(made("NeMo-RL v0.5", "2048").scores());
  CHECK(!made("NeMo-RL v0.6", "2048").scores());
  CHECK(made("NeMo-RL v0.6", "512").scores());
}

// What was measured of a sync alone: what engines wait for, or what learners do.
TEST_CASE("a row of a weight sync alone is a scenario without steps", "[grpo]") {
  const auto row = [](std::string_view line) {
    const CsvTable table = parse_csv(
        "id,source,hardware,gpus,model,algorithm,gen_batch,gen_tp,train_strategy,sync_s\n" +
            std::string(line),
        "s.csv");
    return grpo_rows(table).front();
  };
  const GrpoRow engine =
      row("s,MoonshotAI/checkpoint-engine README.md,H20-141GB,256,DeepSeek-V3.1 (fp8),weight sync "
          "only,,16,,10.19\n");
  CHECK(only_sync(engine));
  CHECK(has_engines(engine));
  const ExpressedRow made = express(engine, catalog());
  CHECK(made.family == "grpo sync h20-141");
  const Grpo grpo = *loaded(made).grpo;
  CHECK(grpo.protocol == SyncProtocol::host_buckets);
  CHECK(grpo.sent == EngineBits::fp8);
  CHECK(grpo.tensor_parallel == 16);
  const GrpoRow trainer =
      row("s,PrimeIntellect-ai/prime-rl benchmarks,H200-141GB,8,Qwen3-30B-A3B,weight sync "
          "only,,,FSDP2,36.7\n");
  CHECK(!has_engines(trainer));
  CHECK(!saves_nothing(trainer));
  CHECK(loaded(express(trainer, catalog())).grpo->protocol == SyncProtocol::files);
  CHECK(express(row("s,,H20-141GB,8,GLM-4.5-Air (bf16),weight sync only,,8,,\n"), catalog())
            .missing == std::vector<std::string>{"the time of a sync"});
}

TEST_CASE("a script beside a table fills in what its rows leave open", "[grpo]") {
  const auto row = [](std::string_view line) {
    const CsvTable table = parse_csv(
        "id,hardware,nodes,gpus,framework,model,algorithm,gen_batch,avg_seq,mfu_pct,step_s\n" +
            std::string(line),
        "s.csv");
    return express(grpo_rows(table).front(), catalog());
  };
  const Scenario large =
      loaded(row("s,H20-96GB,,96,verl Megatron + vLLM,DeepSeek-671B,GRPO,,1960,,1700\n"));
  CHECK(large.strategy.pipeline_parallel.size == 12);
  CHECK(large.strategy.tensor_parallel.size == 8);
  CHECK(large.grpo->responses() == 96 * 8);
  CHECK(large.grpo->memory_utilization == 0.6);
  // With nothing but a utilisation.
  const Scenario small = loaded(row("s,H20-96GB,,8,verl Megatron,Qwen3-30B-A3B,GRPO,,,40,\n"));
  CHECK(small.grpo->responses() == 512 * 16);
  CHECK_FALSE(small.grpo->reference_model);
  const Scenario ppo = loaded(row("s,A800-80GB,2,16,OpenRLHF,Llama-2 class 7B,PPO,1024,,,471\n"));
  CHECK(ppo.model.name == "llama-2-7b");
  CHECK(ppo.grpo->critic);
  CHECK(ppo.grpo->reward_model);
  // Its script has no engines: half of the GPUs learn and generate, the other models have the rest.
  CHECK(ppo.grpo->layout == GrpoLayout::colocated);
  CHECK(ppo.engine->own_weights);
  CHECK(ppo.grpo->own.critic == 4);
  CHECK(ppo.grpo->own.reference == 2);
  CHECK(ppo.grpo->own.reward == 2);
  CHECK(ppo.grpo->rollout_at_once == 16);
  CHECK(ppo.strategy.sharding == Sharding::zero2);
  CHECK(ppo.grpo->async_steps == 0);
  const Scenario ppo_70b =
      loaded(row("s,A800-80GB,4,32,OpenRLHF,Llama-2 class 70B,PPO,1024,,,4489\n"));
  CHECK(ppo_70b.engine->name == "vllm-v0");
  CHECK(ppo_70b.grpo->layout == GrpoLayout::separate);
  CHECK(ppo_70b.grpo->learners == std::vector<std::uint32_t>{8, 0, 0, 0});
  CHECK(place(ppo_70b.cluster, *ppo_70b.grpo).engines.size() == 4);
  CHECK(ppo_70b.strategy.sharding == Sharding::zero3);
}

TEST_CASE("a time that nobody published has a range to draw from", "[grpo]") {
  const std::vector<Setting> settings{
      {"job.verify_time", "{value: 10 ms, low: 3 ms, high: 30 ms, grade: guess, source: nobody}"}};
  const auto time = [&](const MaybeDraw& draw) {
    return load_scenario(data, "colocated-8b", settings, draw).grpo->verify_time.value;
  };
  CHECK(time({}) == Approx(0.01));
  const double drawn = time(Draw{.seed = 3, .sample = 1, .of = 8});
  CHECK(drawn != Approx(0.01));
  CHECK(drawn > 0.003);
  CHECK(drawn < 0.03);
}

TEST_CASE("a protocol that a recipe's program has not is refused", "[grpo]") {
  const auto message = [](const char* recipe, const char* protocol) -> std::string {
    try {
      load_scenario(data, "colocated-8b",
                    std::vector<Setting>{{"recipe", recipe}, {"job.sync_protocol", protocol}});
    } catch (const UserError& error) {
      return error.problems().front().key + ": " + error.problems().front().message;
    }
    return "";
  };
  CHECK(message("nemo-rl", "v3") ==
        "job.sync_protocol: v3 is not in NeMo-RL's trainer, which has buckets");
  CHECK(message("verl", "files") ==
        "job.sync_protocol: files is not in verl's trainer, which has buckets, host_buckets");
  CHECK(message("verl", "host_buckets").empty());
}

TEST_CASE("a row that cannot be a scenario says why", "[grpo]") {
  const auto reasons = [](std::string_view from, std::string_view to) {
    return made_of(std::string(usual), from, to).missing;
  };
  using Reasons = std::vector<std::string>;
  CHECK(reasons("GRPO", "PPO") == Reasons{"a critic and a reward model (PPO)"});
  CHECK(reasons("2048", "") == Reasons{"responses of a step"});
  CHECK(reasons("1562,97.7", ",") == Reasons{"the time of a step"});
  CHECK(reasons("97.7", "long") == Reasons{"step_s: expected a number, found \"long\""});
  CHECK(reasons("Llama-3.1-8B", "Nobody-8B") == Reasons{"the widths of the model \"Nobody-8B\""});
}

TEST_CASE("a missing mean is what rate, time and batch give", "[grpo]") {
  const Scenario scenario = loaded(made_of(std::string(usual), "1060", ""));
  CHECK(mean_response(*scenario.grpo) == Approx(1562 * 16 * 97.7 / 2048 - 256).epsilon(0.01));
}

TEST_CASE("a row of an engine becomes a load", "[grpo]") {
  const ExpressedEngineRow row = engine_of(
      "e,A100-80GB SXM,8,Qwen/Qwen3-235B-A22B-Instruct-2507,bf16,vLLM "
      "v0.11.0,8,4000,200,500,,8170.72,357.26,1.96,\n");
  REQUIRE(row.missing.empty());
  CHECK(row.family == "engine a100-sxm-80");
  CHECK(row.load.model == "qwen3-235b-a22b");
  CHECK(row.load.engine.tensor_parallel == 8);
  CHECK(row.load.engine.batched_sequences == 256);
  CHECK(row.load.input == 4000);
  CHECK(row.load.output == 200);
  CHECK(row.load.requests == 500);
}

TEST_CASE("an engine's command says whether it uses graphs", "[grpo]") {
  const auto eager = [](const std::string& command) {
    const ExpressedEngineRow row = engine_of(
        "e,H200-141GB,1,GPT-2,bf16,vLLM,1,128,32,1,,,207,,," + command + "\n", ",command");
    REQUIRE(row.missing.empty());
    return row.load.engine.enforce_eager;
  };
  CHECK_FALSE(eager("vllm serve gpt2"));
  CHECK(eager("vllm serve gpt2 --enforce-eager"));
  CHECK(eager("python3 -m sglang.launch_server --disable-cuda-graph"));
}

TEST_CASE("a published load has the requests that its engine's benchmark sends", "[grpo]") {
  const auto load = [](const std::string& lengths) {
    return engine_of("e,H100-80GB,1,Llama-3.1-8B,fp8,TensorRT-LLM,1," + lengths + ",,,,9305,,\n")
        .load.requests;
  };
  CHECK(load("128,128") == 30000);
  CHECK(load("20000,2000") == 1000);
  CHECK(load("777,777") == 3 * 2048);  // none that it publishes
}

TEST_CASE("engines take the share of a GPU that their server takes by default", "[grpo]") {
  const auto share = [](const std::string& engine, const std::string& hardware) {
    return engine_of("e," + hardware + ",1,Qwen/Qwen3-14B,bf16," + engine +
                     ",1,128,128,10,,,300,,\n")
        .load.engine.memory_utilization;
  };
  CHECK(share("vLLM v0.11.0", "H100-80GB") == 0.9);
  CHECK(share("SGLang v0.5.5", "H100-80GB") == 0.83);
  CHECK(share("SGLang v0.5.5", "H200-141GB") == 0.9);
}

TEST_CASE("conversations are as long as their rates say", "[grpo]") {
  const ExpressedEngineRow row = engine_of(
      "e,H100-80GB,1,Qwen/Qwen3-14B,bf16,vLLM,1,ShareGPT,ShareGPT,1000,32,6600,3180,15,\n");
  REQUIRE(row.missing.empty());
  CHECK(row.load.output == Approx(212));
  CHECK(row.load.input == Approx(228));
  CHECK(row.load.at_once == 32);
}

TEST_CASE("a row of an engine that cannot be predicted says why", "[grpo]") {
  CHECK(engine_of("e,H100-80GB,1,Qwen/Qwen3-14B,awq,vLLM,1,128,128,10,,,300,,\n").missing ==
        std::vector<std::string>{"weights as awq"});
  CHECK(engine_of("e,TPU v5,1,Qwen/Qwen3-14B,bf16,vLLM,1,128,128,10,,,300,,\n").missing ==
        std::vector<std::string>{"the hardware \"TPU v5\""});
  CHECK(engine_of("e,H100-80GB,1,Nobody-14B,bf16,vLLM,1,x,128,10,,,,,\n").missing ==
        std::vector<std::string>{"the model \"Nobody-14B\"", "the lengths of prompts and answers",
                                 "a rate or a time"});
}

TEST_CASE("a mean behind the limit is that of what the limit leaves", "[grpo]") {
  const auto mean = [](const std::string& said) {
    return mean_response(
        *load_scenario(data, "colocated-8b",
                       std::vector<Setting>{{"job.response_lengths.mean", said},
                                            {"job.response_lengths.behind_limit", "true"}})
             .grpo);
  };
  CHECK(mean("800") == Approx(800).epsilon(1e-6));
  CHECK(mean("2500") == Approx(2500).epsilon(1e-6));
  try {
    mean("3072");
    FAIL("a mean at the limit is no mean behind it");
  } catch (const UserError& error) {
    CHECK(error.problems().front().message ==
          "behind the limit it is less than response_length (3072)");
  }
}
