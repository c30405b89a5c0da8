#include <fmt/format.h>

#include "scenarios/load/load_scenario.hpp"
#include "scenarios/read/run_length.hpp"
#include "scenarios/read/scenario_catalog.hpp"
#include "sim/base/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/exactly.hpp"
#include "tests/support/source_data.hpp"
#include "tests/support/temporary_folder.hpp"
#include "topology/catalog.hpp"

using namespace stepsim;

namespace {

constexpr std::string_view head =
    "name: a run\nmodel: qwen3-30b-a3b\ncluster: {node: mi300x-8}\nstack: deepspeed-hf-rocm\n";

Scenario load(const std::string& text) {
  const TemporaryFolder folder;
  put_bytes(folder.file("run.yaml"), text);
  return load_scenario(source_data(), folder.file("run.yaml"));
}

// What is wrong, as "line: key: message" per problem.
std::vector<std::string> problems_of(const std::string& text) {
  std::vector<std::string> said;
  try {
    load(text);
  } catch (const UserError& error) {
    for (const Problem& problem : error.problems())
      said.push_back(std::to_string(problem.line) + ": " + problem.key + ": " + problem.message);
  }
  return said;
}

std::vector<std::string> problems(std::string_view job, std::string_view strategy,
                                  std::string_view rest = "") {
  return problems_of(fmt::format("{}job: {}\nstrategy: {}\n{}", head, job, strategy, rest));
}

constexpr std::string_view any_job = "{sequence: 4096}";
constexpr std::string_view any_strategy = "{zero: 3}";
using Said = std::vector<std::string>;

}  // namespace

TEST_CASE("a misspelt key is named with the nearest one", "[scenarios]") {
  CHECK(problems("{sequence: 4096, micro_bach: 2}", any_strategy) ==
        Said{R"(5: job.micro_bach: unknown key (did you mean "micro_batch"?))"});
  CHECK(problems(any_job, "{zero: 3, zero_optimization: {sub_grop_size: 0}}") ==
        Said{"6: strategy.zero_optimization.sub_grop_size: unknown key (did you mean "
             "\"sub_group_size\"?)"});
}

TEST_CASE("names that the catalogue does not have are named with the nearest one", "[scenarios]") {
  CHECK(problems_of("name: a\nmodel: qwen3-30b-a3c\n"
                    "cluster: {node: mi300x-9, network: roce, processor: epyc-9654f}\n"
                    "stack: deepspeed\njob: {sequence: 4096}\nstrategy: {zero: 3}\n") ==
        Said{"2: model: no model \"qwen3-30b-a3c\" (did you mean \"qwen3-30b-a3b\"?)",
             "3: cluster.node: no cluster or node \"mi300x-9\" (did you mean \"mi300x-1\"?)",
             "3: cluster.network: no network \"roce\"; `stepsim list networks` names all",
             "3: cluster.processor: no processor \"epyc-9654f\" (did you mean \"epyc-9654\"?)",
             "4: stack: no stack \"deepspeed\" (did you mean \"deepspeed-hf\"?)"});
}

TEST_CASE("missing sections are named, all of them", "[scenarios]") {
  CHECK(problems_of("name: a\nmodel: qwen3-30b-a3b\n") ==
        Said{"1: cluster: is missing", "1: stack: is missing", "1: job: is missing",
             "1: strategy: is missing"});
  CHECK(problems_of("name: a\nmodel: qwen3-30b-a3b\ncluster: mi300x-8\n"
                    "stack: deepspeed-hf-rocm\njob: {sequence: 1}\nstrategy: {zero: 3}\n") ==
        Said{"3: cluster: expected a mapping, found \"mi300x-8\""});
  CHECK(problems("{micro_batch: 2}", any_strategy) == Said{"5: job.sequence: is missing"});
  CHECK(problems_of("name: a\nmodel: qwen3-30b-a3b\ncluster: {node: mi300x-8}\n"
                    "stack: deepspeed-hf-rocm\njob: {sequence: 4096}\n") ==
        Said{"1: strategy: is missing"});
}

TEST_CASE("a model's config.json is looked for beside the scenario", "[scenarios]") {
  const TemporaryFolder folder;
  put_bytes(folder.file("config.json"),
            R"({"architectures": ["Qwen2ForCausalLM"], "hidden_size": 64, "intermediate_size": 128,
                "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 2,
                "vocab_size": 100, "max_position_embeddings": 4096})");
  put_bytes(folder.file("run.yaml"),
            "name: a\nmodel: config.json\ncluster: {node: mi300x-8}\nstack: deepspeed-hf-rocm\n"
            "job: {sequence: 4096}\nstrategy: {zero: 3}\n");
  CHECK(load_scenario(source_data(), folder.file("run.yaml")).model.hidden == 64);
}

TEST_CASE("what is wrong elsewhere does not make DeepSpeed's file an unknown key", "[scenarios]") {
  CHECK(problems_of("name: a\nmodel: qwen3-30b-a3b\ncluster: {node: mi300x-9}\n"
                    "stack: deepspeed-hf-rocm\njob: {sequence: 4096}\n"
                    "strategy: {deepspeed: ds.json}\n") ==
        Said{"3: cluster.node: no cluster or node \"mi300x-9\" (did you mean \"mi300x-1\"?)"});
}

TEST_CASE("expert parallelism is refused where DeepSpeed refuses it", "[scenarios]") {
  CHECK(problems(any_job, "{zero: 3, moe: {kernel: tutel, expert_parallel: 2}}") ==
        Said{"6: strategy.moe.expert_parallel: DeepSpeed's own expert parallelism works with zero: "
             "1 or 2 only"});
  CHECK(problems(any_job, "{zero: 2, moe: {kernel: loop, expert_parallel: 2}}") ==
        Said{"6: strategy.moe.expert_parallel: needs a kernel that exchanges tokens: grouped, "
             "megablocks, padded, tutel or deepspeed"});
  CHECK(problems(any_job, "{zero: fsdp, moe: {kernel: tutel, expert_parallel: 2}}") ==
        Said{"6: strategy.moe.expert_parallel: kernels with slots work with zero: 1 or 2 only; "
             "fsdp takes grouped or padded"});
  CHECK(problems(any_job,
                 "{zero: fsdp, tensor_parallel: {size: 2}, "
                 "moe: {kernel: grouped, expert_parallel: 8}}") ==
        Said{"6: strategy.moe.expert_parallel: 8 x 2 does not divide 8 ranks"});
  CHECK(problems(any_job,
                 "{zero: 1, tensor_parallel: {size: 4, sequence: false}, "
                 "moe: {kernel: grouped, expert_parallel: 2, expert_tensor_parallel: 2}}") ==
        Said{"6: strategy.moe.expert_tensor_parallel: is 1 or the tensor_parallel size, 4",
             "6: strategy.moe.expert_parallel: needs tensor_parallel.sequence: true"});
  CHECK(problems(any_job, "{zero: 2, moe: {kernel: tutel, expert_parallel: 3}}") ==
        Said{"6: strategy.moe.expert_parallel: 3 does not divide 8 ranks",
             "6: strategy.moe.expert_parallel: 3 does not divide 128 experts"});
  CHECK(problems_of("name: a\nmodel: llama-3.2-3b\ncluster: {node: mi300x-8}\n"
                    "stack: deepspeed-hf-rocm\njob: {sequence: 4096}\n"
                    "strategy: {zero: 2, moe: {kernel: tutel, expert_parallel: 2}}\n") ==
        Said{"6: strategy.moe.expert_parallel: llama-3.2-3b has no experts"});
}

TEST_CASE("the same rows on ranks with different experts need a layout that has them",
          "[scenarios]") {
  const std::string fine =
      "{zero: fsdp, moe: {kernel: grouped, expert_parallel: 4, same_rows: true}}";
  CHECK(problems(any_job, fine).empty());
  CHECK(
      problems(any_job, "{zero: 1, moe: {kernel: grouped, expert_parallel: 4, same_rows: true}}") ==
      Said{"6: strategy.moe.same_rows: is modelled for zero: fsdp and hsdp only"});
  CHECK(problems(any_job, "{zero: fsdp, moe: {kernel: grouped, same_rows: true}}") ==
        Said{"6: strategy.moe.same_rows: needs an expert_parallel above 1"});
  CHECK(problems(any_job,
                 "{zero: fsdp, tensor_parallel: {size: 2}, "
                 "moe: {kernel: grouped, expert_parallel: 8, same_rows: true}}") ==
        Said{"6: strategy.moe.expert_parallel: 8 does not divide 4 ranks",
             "6: strategy.moe.same_rows: needs tensor_parallel.sequence: false and "
             "expert_tensor_parallel: 1"});
  CHECK(problems(any_job,
                 "{zero: fsdp, tensor_parallel: {size: 2}, "
                 "moe: {kernel: grouped, expert_tensor_parallel: 1}}") ==
        Said{"6: strategy.moe.expert_tensor_parallel: 1 without expert_parallel needs sequence: "
             "false"});
}

TEST_CASE("tensor parallelism in pieces is a compiler's, or Megatron's", "[scenarios]") {
  CHECK(problems(any_job, "{zero: fsdp, tensor_parallel: {size: 2, async: true}}") ==
        Said{"6: strategy.tensor_parallel.async: needs compile: true or a stack that overlaps "
             "products, "
             "sequence: true and no gather_each"});
}

TEST_CASE("what cannot be offloaded is refused", "[scenarios]") {
  CHECK(problems(any_job, "{zero: 2, offload: {parameters: cpu}}") ==
        Said{"6: strategy.offload.parameters: needs zero: 3, or fsdp and its optimizer on the "
             "host, too"});
  CHECK(problems(any_job, "{zero: 0, offload: {optimizer: cpu}}") ==
        Said{"6: strategy.offload.optimizer: is modelled for zero: 1, 2 and 3, and fsdp"});
  const std::string together =
      "fsdp keeps parameters, gradients and optimizer on the host together: needs optimizer: cpu "
      "and parameters: cpu";
  CHECK(problems(any_job, "{zero: fsdp, offload: {optimizer: cpu}}") ==
        Said{"6: strategy.offload.parameters: " + together});
  CHECK(problems(any_job, "{zero: hsdp, offload: {parameters: cpu}}") ==
        Said{"6: strategy.offload.optimizer: " + together});
  CHECK(problems(any_job, "{zero: fsdp, offload: {optimizer: nvme, parameters: nvme}}") ==
        Said{"6: strategy.offload.optimizer: nvme needs zero: 3",
             "6: strategy.offload.parameters: nvme needs zero: 3"});
}

TEST_CASE("a sequence that the model has no positions for is refused", "[scenarios]") {
  CHECK(problems_of("name: a\nmodel: gpt-22b\ncluster: {node: mi300x-8}\n"
                    "stack: deepspeed-hf-rocm\njob: {sequence: 4000}\nstrategy: {zero: 3}\n") ==
        Said{"5: job.sequence: 4000 is longer than gpt-22b allows (2048)"});
}

TEST_CASE("rotary positions can be stretched: a note, not an error", "[scenarios]") {
  CHECK(problems("{sequence: 50000}", any_strategy).empty());
  CHECK(
      load(fmt::format("{}job: {{sequence: 50000}}\nstrategy: {}\n", head, any_strategy)).notes ==
      Said{"rows of 50000 tokens are longer than qwen3-30b-a3b states (40960): its positions have "
           "to be stretched"});
}

TEST_CASE("everything that is wrong with a file is said at once", "[scenarios]") {
  const Said said = problems_of(
      "name: a\nmodel: lama-3.2-3b\ncluster: {node: mi300x-8, nodes: 0}\n"
      "stack: deepspeed-hf-rocm\njob: {sequence: 4096, method: stf}\n"
      "strategy: {zero: 4, offload: {parameters: cpu}, moe: {kernel: tutel, expert_parallel: 2}}\n"
      "mesured: {wall: 1 h}\n");
  REQUIRE(said.size() == 6);
  CHECK(said[0] == "2: model: no model \"lama-3.2-3b\" (did you mean \"llama-3.2-3b\"?)");
  CHECK(said[1].starts_with("3: cluster.nodes: expected a number from 1 to "));
  CHECK(said[2] ==
        "5: job.method: expected sft, dpo, kto, grpo, reward, classify, "
        "classify_tokens, embed or mlm, found \"stf\" (did you mean \"sft\"?)");
  CHECK(said[3].starts_with("6: strategy.zero: expected 0, 1, 2, 3, fsdp or hsdp, found \"4\""));
  // A stage that is no stage counts as the default, which is 3.
  CHECK(said[4].starts_with("6: strategy.moe.expert_parallel: "));
  CHECK(said[5] == "7: mesured: unknown key (did you mean \"measured\"?)");
}

TEST_CASE("how long a run is may be said once", "[scenarios]") {
  CHECK(problems("{sequence: 4096, tokens: 1e9, samples: 10, packing: false}", any_strategy) ==
        Said{"5: job.samples: says again how long the run is: tokens does already"});
  CHECK(problems("{sequence: 4096, samples: 10}", any_strategy) ==
        Said{"5: job.samples: needs packing: false; a packed job is given by tokens or steps"});
}

TEST_CASE("observations are quantities or ranges of them", "[scenarios]") {
  const auto measured = [](std::string_view what) {
    return problems(any_job, any_strategy, "measured: {" + std::string(what) + ", source: a log}");
  };
  CHECK(measured("wall: [2 h, 1 h]") ==
        Said{"7: measured.wall: expected low <= high, found [2 h, 1 h]"});
  CHECK(measured("wall: [1 h, 2 h, 3 h]") ==
        Said{"7: measured.wall: expected a time or a list [low, high] of two"});
  CHECK(measured("memory: 40") ==
        Said{"7: measured.memory: the unit is missing: expected a size such as \"80 GB\", found "
             "\"40\""});
  CHECK(measured("memory: 0 GB") == Said{"7: measured.memory: must be above zero"});
  CHECK(measured("verdict: omo") ==
        Said{"7: measured.verdict: expected fits or oom, found \"omo\" (did you mean \"oom\"?)"});
  CHECK(problems(any_job, any_strategy, "measured: {source: a log}") ==
        Said{"7: measured.source: belongs to no figure: what was observed?"});
  CHECK(measured("wall: 1 h, bands: {memory: 0.1}") ==
        Said{"7: measured.bands.memory: belongs to no figure of this block"});
  CHECK(problems(any_job, any_strategy, "measured: {wall: 1 h}") ==
        Said{"7: measured.source: is missing"});
}

TEST_CASE("figures and verdicts of an observation are read", "[scenarios]") {
  const Scenario scenario =
      load(std::string(head) +
           "job: {sequence: 4096}\nstrategy: {zero: 3}\nmeasured: {wall: 2 h, "
           "memory: [1 GB, 2 GiB], verdict: oom, bands: {wall: 0.2}, source: a log}\n");
  REQUIRE(scenario.measured);
  CHECK_FALSE(scenario.estimated);
  const Observation& seen = *scenario.measured;
  REQUIRE(seen.of(Metric::wall));
  CHECK_THAT(seen.of(Metric::wall)->low, exactly(7200));
  CHECK_THAT(seen.of(Metric::wall)->high, exactly(7200));
  REQUIRE(seen.of(Metric::memory));
  CHECK_THAT(seen.of(Metric::memory)->high, exactly(2.0 * (1 << 30)));
  CHECK_FALSE(seen.of(Metric::step_time));
  CHECK(seen.fits == false);
  CHECK_THAT(seen.bands[static_cast<std::size_t>(Metric::wall)].value(), exactly(0.2));
  CHECK_FALSE(seen.bands[static_cast<std::size_t>(Metric::memory)]);
}

TEST_CASE("an error counts from the nearer end of a range", "[scenarios]") {
  CHECK_THAT(error_against({2, 4}, 1), exactly(-0.5));
  CHECK(error_against({2, 4}, 2) == 0);
  CHECK(error_against({2, 4}, 4) == 0);
  CHECK_THAT(error_against({2, 4}, 5), exactly(0.25));
}

TEST_CASE("batches of two MPT runs come out as their logs count them", "[scenarios]") {
  Job job;
  job.packed = false;
  job.samples = 87925;
  job.micro_batch = 1;
  job.accumulation = 4;
  auto length = run_length(job, 2);
  REQUIRE(length);
  CHECK(length->iterations == 43963);
  CHECK(length->optimizer_steps == 10991);
  CHECK(length->effective_batch == 8);
  job.micro_batch = 4;
  length = run_length(job, 2);
  CHECK(length->iterations == 10991);
  CHECK(length->optimizer_steps == 2748);
  CHECK(length->effective_batch == 32);
  job.epochs = 3;
  CHECK(run_length(job, 2)->optimizer_steps == 3 * 2748);
}

TEST_CASE("tokens, iterations and steps say the same about a run", "[scenarios]") {
  Job job;
  job.sequence = 1000;
  job.micro_batch = 2;
  job.accumulation = 4;
  job.fill = 0.5;
  CHECK_FALSE(run_length(job, 8));
  job.tokens = 10 * 8 * 2 * 4 * 500.0;
  CHECK(run_length(job, 8)->optimizer_steps == 10);
  CHECK(run_length(job, 8)->iterations == 40);
  job.tokens += 1;
  CHECK(run_length(job, 8)->optimizer_steps == 11);
  job.tokens = 0;
  job.iterations = 41;
  CHECK(run_length(job, 8)->optimizer_steps == 11);
  job.iterations = 0;
  job.optimizer_steps = 10;
  CHECK_THAT(run_length(job, 8)->tokens, exactly(10 * 8 * 2 * 4 * 500.0));
}

TEST_CASE("scenarios are found by name, with and without their folder", "[scenarios]") {
  const Catalogue& data = source_data();
  const std::string file = data.file("scenarios/seeds/llama32-3b-sft-zero3.yaml");
  CHECK(find_scenario(data, "llama32-3b-sft-zero3") == file);
  CHECK(find_scenario(data, "seeds/llama32-3b-sft-zero3") == file);
  CHECK(find_scenario(data, "my/own.yaml") == "my/own.yaml");
  CHECK_THROWS_WITH(find_scenario(data, "llama32-3b-sft-zero4"),
                    "no file and no scenario \"llama32-3b-sft-zero4\" (did you mean "
                    "\"llama32-3b-sft-zero3\"?); `stepsim list scenarios` names them");
}

TEST_CASE("a hybrid shard and its copies have to make up the ranks", "[scenarios]") {
  CHECK(problems(any_job, "{zero: hsdp, fsdp: {shard: 4, replicate: 3}}") ==
        Said{"6: strategy.fsdp: shard 4 x replicate 3 is not 8 ranks"});
  CHECK(problems(any_job, "{zero: hsdp, fsdp: {shard: 3}}") ==
        Said{"6: strategy.fsdp: shard 3 x replicate 2 is not 8 ranks"});
  CHECK(problems(any_job, "{zero: hsdp, fsdp: {replicate: 2}}").empty());
  CHECK(problems(any_job, "{zero: hsdp}").empty());
  CHECK(problems(any_job, "{zero: fsdp, fsdp: {version: 3, reduce_dtyp: fp32}}") ==
        Said{"6: strategy.fsdp.version: expected a number from 1 to 2, found 3",
             "6: strategy.fsdp.reduce_dtyp: unknown key (did you mean \"reduce_dtype\"?)"});
}

TEST_CASE("what ranks share has to come out even", "[scenarios]") {
  CHECK(problems(any_job, "{zero: 1, tensor_parallel: {size: 3}}") ==
        Said{"6: strategy.tensor_parallel.size: 3 does not divide 8 ranks",
             "6: strategy.tensor_parallel.size: 3 does not divide 32 attention heads",
             "6: strategy.tensor_parallel.size: 3 neither divides 4 key-value heads nor is a "
             "multiple of them",
             "6: strategy.tensor_parallel.size: 3 does not divide 4096 tokens of a sequence"});
  CHECK(problems(any_job, "{zero: 1, tensor_parallel: {size: 8}}").empty());
  CHECK(problems("{sequence: 4100}", "{zero: 3, sequence_parallel: {ulysses: 8}}") ==
        Said{"6: strategy.sequence_parallel.ulysses: 8 does not divide 4100 tokens of a sequence"});
  CHECK(problems("{sequence: 4100}", "{zero: 3, sequence_parallel: {ring: 4}}") ==
        Said{"6: strategy.sequence_parallel.ring: a sequence of 4100 is no multiple of 2 x 4 "
             "pieces"});
  CHECK(problems(any_job, "{zero: 3, sequence_parallel: {ring: 3}}").front() ==
        "6: strategy.sequence_parallel.ring: 3 does not divide 8 ranks");
}

TEST_CASE("a secondary partition and quantised traffic belong to stage 3", "[scenarios]") {
  CHECK(problems(any_job, "{zero: 3, zero_optimization: {zero_hpz_partition_size: 3}}") ==
        Said{"6: strategy.zero_optimization.zero_hpz_partition_size: 3 does not divide 8 ranks"});
  CHECK(problems(any_job, "{zero: 2, zero_optimization: {zero_quantized_weights: true}}") ==
        Said{"6: strategy.zero_optimization.zero_quantized_weights: needs zero: 3"});
}

TEST_CASE("adapters beside experts that ranks share are not modelled", "[scenarios]") {
  CHECK(problems(any_job, "{zero: 1, lora: {rank: 8, targets: all}, tensor_parallel: {size: 4}}") ==
        Said{"6: strategy.tensor_parallel.size: is not modelled with lora beside divided experts: "
             "needs lora.targets: linear or moe.expert_tensor_parallel: 1"});
  CHECK(problems(any_job, "{zero: 1, lora: {rank: 8}, tensor_parallel: {size: 4}}").empty());
}

TEST_CASE("a release of DeepSpeed stands for what it does", "[scenarios]") {
  const auto keys = [](const std::string& version) {
    const TemporaryFolder folder;
    const std::string file = folder.file("scenario.yaml");
    put_bytes(file,
              "name: n\nmodel: llama-3.1-8b\ncluster: {node: h100-8}\nstack: deepspeed-hf\n"
              "job: {sequence: 128}\nstrategy: {zero: 3}\nreleases: {deepspeed: " +
                  version + "}\n");
    return load_scenario(source_data(), file).strategy.zero;
  };
  CHECK(keys("0.18.4").clears_in_sub_groups);
  CHECK_FALSE(keys("0.18.4").counts_in_hooks);
  CHECK_FALSE(keys("0.17.4").waits_for_reductions);
  CHECK(keys("0.17.5").waits_for_reductions);
  CHECK(keys("0.18.4").waits_for_reductions);
  CHECK_FALSE(keys("0.18.5").waits_for_reductions);
  CHECK(keys("0.5.10").stops_at_fetches);
  CHECK_FALSE(keys("0.6.0").stops_at_fetches);
  CHECK(keys("0.18.5").counts_in_hooks);
  CHECK_FALSE(keys("0.19").counts_in_hooks);
  CHECK(keys("0.19.6").clears_in_sub_groups);
  CHECK(keys("0.18.6").counts_in_hooks);
  CHECK_FALSE(keys("0.18.7").counts_in_hooks);
  CHECK_FALSE(keys("0.15.1").loses_sums);
  CHECK(keys("0.15.2").loses_sums);
  CHECK_FALSE(keys("0.19.0").loses_sums);
  CHECK(problems(any_job, "{zero: 3}\nreleases: {deepspeed: new, deepspeeed: 0.1}") ==
        Said{"7: releases.deepspeed: expected numbers with dots, such as 0.17.4, found \"new\"",
             "7: releases.deepspeeed: no program \"deepspeeed\" (did you mean \"deepspeed\"?)"});
}
