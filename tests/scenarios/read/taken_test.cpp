// A scenario says in the field's words what it was taken for; a value that nobody said is marked.
#include "scenarios/read/taken.hpp"

#include <algorithm>

#include "scenarios/read/scenario_reader.hpp"
#include "sim/base/lists.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"

using namespace stepsim;
using Catch::Contains;

namespace {

Scenario read(const std::string& strategy, const std::string& job = "") {
  return parse_scenario(
      source_data(),
      "name: a run\nmodel: llama-3.1-8b\ncluster: {node: h100-8}\nstack: deepspeed-hf\n"
      "job: {sequence: 2048, micro_batch: 2" +
          job + "}\nstrategy: " + strategy + "\n",
      "run.yaml");
}

std::string part_of(const Scenario& scenario, std::string_view key) {
  const std::vector<Taken> parts = taken_of(scenario);
  return std::ranges::find(parts, key, &Taken::key)->text;
}

}  // namespace

TEST_CASE("a head of labels has no loss over logits", "[scenarios]") {
  CHECK(part_of(read("{zero: 3}", ", method: reward"), "loss") ==
        "loss over the two numbers of a pair");
  CHECK(part_of(read("{zero: 3}", ", method: classify, labels: 3"), "loss") ==
        "loss over 3 labels");
  CHECK(part_of(read("{zero: 3}", ", method: embed"), "loss") ==
        "each text against all others of the micro-batch");
}

TEST_CASE("what is taken names method, rows and sharding", "[scenarios]") {
  const Scenario lora =
      read("{zero: 0, lora: {rank: 64, targets: linear, quantised: nf4}, optimizer: adamw_8bit}",
           ", gradient_accumulation: 4");
  CHECK(part_of(lora, "method") == "QLoRA nf4, rank 64 on 7 matrices");
  CHECK_THAT(part_of(lora, "batch"), Contains("2 rows x 4 x 8 GPUs of 2048 tokens"));
  CHECK(part_of(lora, "sharding") == "each GPU has everything");
  const Scenario attention = read("{zero: 0, lora: {rank: 8, targets: attention}}");
  CHECK(part_of(attention, "method") == "LoRA, rank 8 on 4 matrices");
  const Scenario two = read("{zero: 0, lora: {rank: 8, modules: [q_proj, v_proj]}}");
  CHECK_THAT(part_of(two, "method"), Contains("on 2 matrices"));
  const Scenario full = read("{zero: 3, offload: {optimizer: cpu}}", ", method: dpo");
  CHECK(part_of(full, "method") == "pairs (DPO), full training, with a reference model");
  CHECK(part_of(full, "sharding") == "ZeRO-3");
  CHECK_THAT(part_of(full, "optimizer"), Contains("on the CPU"));
}

TEST_CASE("what nobody said is marked, and named by its key", "[scenarios]") {
  const Scenario silent = read("{zero: 3}");
  CHECK(part_of(silent, "checkpointing") == "full checkpointing*");
  CHECK(part_of(silent, "sharding") == "ZeRO-3");
  CHECK(holds(unsaid_keys(silent), "strategy.checkpointing"));
  CHECK_FALSE(holds(unsaid_keys(silent), "strategy.zero"));
  const Scenario said = read("{zero: 3, checkpointing: none}");
  CHECK(part_of(said, "checkpointing") == "no checkpointing");
  CHECK_THAT(taken_line(taken_of(silent)), Contains("(* no file says it)"));
  const Scenario unknown =
      read("{zero: 3}", ", fill: {value: 0.5, low: 0.2, high: 1, source: nobody knows}");
  CHECK_THAT(part_of(unknown, "batch"), Contains("50 % full*"));
}
