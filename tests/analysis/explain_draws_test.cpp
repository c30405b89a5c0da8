// These tests hold the ranges of a gap's rows against the rows that single draws have.
#include "analysis/studies/explain/explain_draws.hpp"

#include <algorithm>
#include <fstream>

#include "analysis/studies/explain/explained_side.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"
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
    return {"small", path, settings, load_scenario(source_data(), path, settings)};
  }
};

ExplainOptions with_draws(std::uint32_t most) {
  ExplainOptions options;
  options.data = source_data();
  options.carriers = false;
  options.most_draws = most;
  return options;
}

// Returns the rows under one draw: a cause's, and behind them that of idle.
std::vector<double> rows_under(const NamedStep& a, const NamedStep& b, std::uint32_t number) {
  std::vector<double> rows(cause_count + 1);
  for (const auto& [side, sign] : {std::pair{&a, 1.0}, std::pair{&b, -1.0}}) {
    NamedStep drawn = *side;
    drawn.scenario =
        load_scenario(source_data(), side->source, side->settings, draw_number(number, 1));
    const ExplainedSide seen = observe(drawn).side;
    for (std::size_t i = 0; i < cause_count; ++i) rows[i] += sign * seen.causes[i].exposed.value;
    rows.back() += sign * seen.idle.value;
  }
  return rows;
}

}  // namespace

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

TEST_CASE("ranges of rows hold eight of ten draws, and what is stated", "[analysis][slow]") {
  const TwoSteps steps;
  const auto& [folder, a, b] = steps;
  const Explanation e = explain(a, b, with_draws(draws));
  REQUIRE(e.draws->draws <= draws);
  std::vector<std::vector<double>> drawn;
  for (std::uint32_t i = 0; i < e.draws->draws; ++i) drawn.push_back(rows_under(a, b, i));
  const double rounding = 1e-9 * std::max(e.a.step_time, e.b.step_time).value;
  for (const ExplainRow& row : e.rows) {
    CAPTURE(name_of(row));
    std::vector<double> values;
    for (const std::vector<double>& rows : drawn)
      values.push_back(rows[row.cause ? index(*row.cause) : cause_count]);
    const Range wanted = range_of(values, row.seconds.value);
    CHECK(std::abs(row.range->low - wanted.low) <= rounding);
    CHECK(std::abs(row.range->high - wanted.high) <= rounding);
  }
}

}  // namespace stepsim
