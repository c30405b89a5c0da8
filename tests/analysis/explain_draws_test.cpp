// Ranges of the rows of a gap beside those of exact parts under the same draws.
#include "analysis/studies/explain/explain_draws.hpp"

#include <algorithm>
#include <fstream>

#include "analysis/studies/explain/explained_side.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"

namespace stepsim {
namespace {

constexpr std::uint32_t draws = 8;

// Small enough for all combinations of its causes under every draw, and bound by the host in parts.
constexpr std::string_view small_run = R"(
name: small
model: {architectures: [LlamaForCausalLM], hidden_size: 2048, intermediate_size: 8192, num_hidden_layers: 3,
        num_attention_heads: 16, num_key_value_heads: 16, vocab_size: 32000, max_position_embeddings: 4096, tie_word_embeddings: false}
cluster: {node: h100-8}
stack: deepspeed-hf
job: {sequence: 2048, gradient_accumulation: 2}
strategy: {zero: 3, checkpointing: none}
)";

// The small run under stage 3 and under stage 2.
struct TwoSteps {
  TemporaryFolder folder;
  NamedStep a, b;

  TwoSteps() {
    const std::string path = folder.file("small.yaml");
    std::ofstream(path) << small_run;
    a = named(path, {});
    b = named(path, {{"strategy.zero", "2"}});
  }
  static NamedStep named(const std::string& path, const std::vector<Setting>& settings) {
    return {"small", path, settings, load_scenario(STEPSIM_SOURCE_DATA, path, settings)};
  }
};

ExplainOptions with_draws(std::uint32_t most) {
  ExplainOptions options;
  options.data = STEPSIM_SOURCE_DATA;
  options.carriers = false;
  options.most_draws = most;
  return options;
}

// The rows under one draw, exactly.
ByCause<double> rows_under(const NamedStep& a, const NamedStep& b, std::uint32_t number) {
  ByCause<double> rows{};
  for (const auto& [side, sign] : {std::pair{&a, 1.0}, std::pair{&b, -1.0}}) {
    const Attribution parts = attribute(
        load_scenario(STEPSIM_SOURCE_DATA, side->source, side->settings, draw_number(number, 1)),
        AttributionOptions{});
    REQUIRE(parts.exact);
    for (std::size_t i = 0; i < cause_count; ++i) rows[i] += sign * parts.parts[i].value;
  }
  return rows;
}

// As for the pages, with fewer orders.
Attribution attributed(const std::string& source, const std::vector<Setting>& settings) {
  return attribute(load_scenario(STEPSIM_SOURCE_DATA, source, settings), {.most_replays = 1});
}

void check_sum(const Attribution& a, const Attribution& b) {
  double sum = a.rest.value - b.rest.value;
  for (const ExplainRow& row : gap_rows(a, b)) sum += row.seconds.value;
  const double gap = a.step_time.value - b.step_time.value;
  CHECK(std::abs(sum - gap) <= 1e-9 * std::max(a.step_time, b.step_time).value);
}

}  // namespace

TEST_CASE("gaps of the pages: rows add up", "[analysis][slow]") {
  check_sum(attributed("qwen3-30b-sft-zero3", {}), attributed("qwen3-30b-sft-zero2moe", {}));
  check_sum(attributed("qwen3-30b-dpo-zero3", {}), attributed("qwen3-30b-dpo-zero2moe", {}));
  check_sum(attributed("mpt7b-zero3-offload", {}),
            attributed("mpt7b-zero3-offload", {{"strategy.offload.optimizer", "none"},
                                               {"strategy.offload.parameters", "none"}}));
}

TEST_CASE("the other way round an explanation says the opposite, and of one step nothing",
          "[analysis][slow]") {
  const TwoSteps steps;
  const auto& [folder, a, b] = steps;
  const ExplainOptions options = with_draws(0);
  const Explanation there = explain(a, b, options), back = explain(b, a, options);
  CHECK(there.gap().value == -back.gap().value);
  REQUIRE(there.rows.size() == back.rows.size());
  for (const ExplainRow& row : there.rows) {
    const auto same =
        std::find_if(back.rows.begin(), back.rows.end(),
                     [&](const ExplainRow& other) { return other.cause == row.cause; });
    REQUIRE(same != back.rows.end());
    CHECK(same->seconds.value == -row.seconds.value);
  }
  const Explanation none = explain(a, a, options);
  CHECK(none.gap().value == 0);
  for (const ExplainRow& row : none.rows) CHECK(row.seconds.value == 0);
}

TEST_CASE("ranges of rows are those that exact parts have under the same draws",
          "[analysis][slow]") {
  const TwoSteps steps;
  const auto& [folder, a, b] = steps;
  const Explanation e = explain(a, b, with_draws(draws));
  REQUIRE(e.draws->draws <= draws);
  std::vector<ByCause<double>> exact;
  for (std::uint32_t i = 0; i < e.draws->draws; ++i) exact.push_back(rows_under(a, b, i));
  for (const ExplainRow& row : e.rows) {
    CAPTURE(to_text(row.cause));
    std::vector<double> values;
    for (const ByCause<double>& rows : exact) values.push_back(rows[index(row.cause)]);
    const Range wanted = range_of(values, row.seconds.value);
    INFO("wanted " << wanted.low << " to " << wanted.high << ", got " << row.range->low << " to "
                   << row.range->high << ", gap " << e.gap().value);
    const double allowed = 0.25 * (wanted.high - wanted.low) + 0.01 * std::abs(e.gap().value);
    CHECK(std::abs(row.range->low - wanted.low) <= allowed);
    CHECK(std::abs(row.range->high - wanted.high) <= allowed);
  }
}

}  // namespace stepsim
