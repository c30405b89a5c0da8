// Rows of engine throughputs: the load that a row is, and what keeps it from being one.
#include "scenarios/rows/engine_row.hpp"

#include "tests/support/catch.hpp"
#include "workloads/grpo/lengths.hpp"

using namespace stepsim;
using Catch::Contains;

namespace {

EngineRow row_of(const std::string& load) {
  const CsvTable table = parse_csv("id,load,output_tok_s\ne,\"" + load + "\",357\n", "e.csv");
  CHECK(holds_engine_rows(table));
  return engine_rows(table).front();
}

}  // namespace

TEST_CASE("a row of an engine is a load", "[grpo]") {
  const EngineRow row = row_of(
      "{model: qwen3-14b, node: h100-8, tensor_parallel: 2, weights: fp8, sequences: 64, prompt: "
      "4000, answer: 200, requests: 500, over_http: true}");
  REQUIRE(row.missing.empty());
  CHECK(row.family == "engine h100-8");
  CHECK(row.load.stack == "vllm");
  CHECK(row.load.engine.tensor_parallel == 2);
  CHECK(row.load.engine.weights == EngineBits::fp8);
  CHECK(row.load.engine.cache == EngineBits::half);
  CHECK(row.load.sequences == 64);
  CHECK(row.load.asked == 200);
  CHECK(row.load.requests == 500);
  CHECK(row.load.chat);
  CHECK(row.output_rate == Cell{357});
  CHECK(response_tokens(row.load.engine, 3, 0) == 200);
}

TEST_CASE("conversations are as long as their mean says", "[grpo]") {
  const EngineRow row = row_of(
      "{model: qwen3-14b, node: h100-8, prompt: 228, answer: 212, lengths: varied, "
      "requests: 1000, at_once: 32}");
  REQUIRE(row.missing.empty());
  CHECK(row.load.at_once == 32);
  CHECK(row.load.asked == 0);
  CHECK(mean_response(row.load.engine) == Approx(212).epsilon(1e-3));
}

TEST_CASE("a row of an engine that is no load says why", "[grpo]") {
  CHECK(row_of("").missing == std::vector<std::string>{"what was served (load)"});
  CHECK_THAT(
      row_of("{model: qwen3-14b, node: h100-8, prompt: 1, answer: 1, requsts: 3}").missing.front(),
      Contains("requests"));
  CHECK_THAT(row_of("{model: m, node: n, prompt: 1, answer: 1, requests: 1, weights: awq}")
                 .missing.front(),
             Contains("weights"));
}
