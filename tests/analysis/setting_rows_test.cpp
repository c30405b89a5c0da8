// Which settings carry a gap: differences that were planted get what they cost.
#include "analysis/studies/explain/setting_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "analysis/studies/explain/explain.hpp"
#include "analysis/studies/explain/explained_side.hpp"
#include "analysis/studies/explain/summary.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"
#include "tests/support/temporary_folder.hpp"

namespace stepsim {
namespace {

constexpr std::string_view small_run = R"(
name: small
model: {architectures: [LlamaForCausalLM], hidden_size: 2048, intermediate_size: 8192, num_hidden_layers: 3,
        num_attention_heads: 16, num_key_value_heads: 16, vocab_size: 32000, max_position_embeddings: 8192, tie_word_embeddings: false}
cluster: {node: h100-8}
stack: deepspeed-hf
job: {sequence: 2048, gradient_accumulation: 2, save: {every: 500}}
strategy: {zero: 3, checkpointing: none}
)";

// Two of what changes nothing without offload and without checkpoints, and more time at the
// beginning of each step.
const std::vector<Setting> idle{{"strategy.offload.threads", "3"}, {"job.save.every", "300"}};
const Setting counter{"stack.host.step", "45 ms"};

struct Runs {
  TemporaryFolder folder;
  std::string path = folder.file("small.yaml");

  Runs() { std::ofstream(path) << small_run; }
  NamedStep with(const std::vector<Setting>& settings) const {
    return {"small", path, settings, load_scenario(source_data(), path, settings)};
  }
};

ScenarioSource source_of(const NamedStep& step) {
  return {step.source, step.settings, step.scenario};
}

Seconds time_of(const NamedStep& step) {
  return in_worker([&] { return step_time_of(step.scenario); });
}

SettingRows rows_between(const NamedStep& a, const NamedStep& b) {
  const auto settings = differing_settings(source_data(), source_of(a), source_of(b));
  const auto replayed = [&](const Joined& joined) {
    return step_time_of(mixture(source_data(), source_of(a), settings, joined));
  };
  return setting_rows(settings, time_of(a), time_of(b), replayed, {});
}

const SettingRow* row_of(const SettingRows& rows, const std::string& key) {
  const auto place = std::ranges::find_if(
      rows.rows, [&](const SettingRow& row) { return row.setting.key == key; });
  return place == rows.rows.end() ? nullptr : &*place;
}

Seconds sum_of(const SettingRows& rows) {
  Seconds sum = rows.rest;
  for (const SettingRow& row : rows.rows) sum += row.seconds;
  return sum;
}

ExplainOptions few() {
  ExplainOptions options;
  options.data = source_data();
  options.carriers = false;
  options.most_draws = 0;
  options.replays.most_replays = 16;
  return options;
}

}  // namespace

TEST_CASE("a planted setting gets its own effect beside idle ones and one against it",
          "[explain][slow]") {
  const Setting planted = GENERATE(values<Setting>(
      {{"strategy.zero", "2"},
       {"strategy.zero", "1"},
       {"strategy.checkpointing", "full"},
       {"strategy.zero_optimization.overlap_comm", "false"},
       {"strategy.zero_optimization.stage3_prefetch_bucket_size", "0"},
       {"strategy.zero_optimization.stage3_param_persistence_threshold", "0"},
       {"strategy.zero_optimization.sub_group_size", "1e6"},
       {"strategy.zero_optimization.reduce_bucket_size", "1e6"},
       {"strategy.optimizer", "adamw_8bit"},
       {"strategy.offload.optimizer", "cpu"},
       {"strategy.cross_entropy", "fused"},
       {"strategy.compile", "true"},
       {"job.micro_batch", "2"},
       {"job.gradient_accumulation", "3"},
       {"job.sequence", "4096"},
       {"cluster.gpus_per_node", "4"},
       {"cluster.node", "h100-8-96"},  // as fast a host: the other setting is time of the host
       {"stack", "deepspeed-hf-rocm"},
       {"gpu.gemm.rate", "500 TFLOP/s"},
       {"node.links.nvlink.bandwidth", "10 GB/s"}}));
  CAPTURE(planted.first, planted.second);
  const Runs runs;
  const NamedStep base = runs.with({}), alone = runs.with({planted});
  const NamedStep a = runs.with({counter});
  const NamedStep b = runs.with({planted, idle[0], idle[1]});
  const double effect = (time_of(base) - time_of(alone)).value;
  REQUIRE(std::abs(effect) > 1e-5);
  const SettingRows rows = rows_between(a, b);
  const SettingRow* own = row_of(rows, planted.first);
  REQUIRE(own != nullptr);
  CHECK(own->seconds.value == Approx(effect).epsilon(0.05));
  REQUIRE(row_of(rows, counter.first) != nullptr);
  for (const Setting& each : idle) CHECK(row_of(rows, each.first) == nullptr);
  CHECK(sum_of(rows).value == Approx((time_of(a) - time_of(b)).value).epsilon(1e-9));
}

TEST_CASE("settings that are the same on both sides carry nothing", "[explain]") {
  const Runs runs;
  const SettingRows same = rows_between(runs.with({}), runs.with({}));
  CHECK(same.rows.empty());
  CHECK(same.idle.empty());
  CHECK(same.rest.value == 0);
  const SettingRows spelled = rows_between(runs.with({}), runs.with({{"job.micro_batch", "1"}}));
  CHECK(spelled.rows.empty());
  const SettingRows nothing = rows_between(runs.with({}), runs.with(idle));
  CHECK(nothing.rows.empty());
  CHECK(nothing.idle.size() == 2);
  CHECK(nothing.rest.value == 0);
}

TEST_CASE("from B to A rows by setting are the same with the other sign", "[explain]") {
  const Runs runs;
  const NamedStep a = runs.with({}),
                  b = runs.with({{"strategy.zero", "2"}, {"strategy.checkpointing", "full"}});
  const SettingRows there = rows_between(a, b), back = rows_between(b, a);
  REQUIRE(there.rows.size() == back.rows.size());
  for (const SettingRow& row : there.rows) {
    const SettingRow* other = row_of(back, row.setting.key);
    REQUIRE(other != nullptr);
    CHECK(row.seconds.value == Approx(-other->seconds.value).margin(1e-9));
  }
}

TEST_CASE("many settings are sampled and still add up to the gap", "[explain]") {
  // Ten players, of which each has its own share and every two next to each other something more.
  std::vector<DifferingSetting> settings(10);
  for (std::size_t i = 0; i < settings.size(); ++i) settings[i].key = fmt::format("k{}", i);
  const auto replayed = [](const Joined& joined) {
    double time = 100;
    for (std::size_t i = 0; i < joined.size(); ++i) {
      if (!joined[i]) continue;
      time -= static_cast<double>(i + 1);
      if (i > 0 && joined[i - 1]) time += 0.5;
    }
    return Seconds{time};
  };
  const Seconds all = replayed(Joined(10, true));
  SettingOptions options;
  options.most_replays = 120;
  const SettingRows rows = setting_rows(settings, {100}, all, replayed, options);
  CHECK_FALSE(rows.exact);
  CHECK(sum_of(rows).value == Approx(100 - all.value).epsilon(1e-9));
  REQUIRE(row_of(rows, "k9") != nullptr);
  CHECK(row_of(rows, "k9")->seconds.value == Approx(10 - 0.25).margin(0.3));
}

TEST_CASE("a batch in other parts is one choice, and another batch is two", "[explain]") {
  std::vector<DifferingSetting> settings{
      {.key = "job.micro_batch", .a = "1", .b = "8", .text_a = "1", .text_b = "8"},
      {.key = "job.gradient_accumulation", .a = "8", .b = "1", .text_a = "8", .text_b = "1"}};
  // Eight rows: each micro-batch costs a second, each row two.
  const auto replayed = [&](const Joined& joined) {
    const double rows = joined[0] ? 8 : 1, batches = joined[1] ? 1 : 8;
    return Seconds{batches * (1 + 2 * rows)};
  };
  const SettingRows one = setting_rows(settings, {24}, {17}, replayed, {});
  REQUIRE(one.rows.size() == 1);
  CHECK(one.rows.front().seconds.value == 7);
  CHECK(one.rows.front().alone.value == 17);
  CHECK(one.rows.front().joined == Joined(2, true));
  settings.back().b = "2";
  CHECK(setting_rows(settings, {24}, {17}, replayed, {}).rows.size() == 2);
}

TEST_CASE("what no setting says is the rest", "[explain]") {
  std::vector<DifferingSetting> settings(1);
  settings.front().key = "k";
  const auto replayed = [](const Joined& joined) { return Seconds{joined[0] ? 7.0 : 10.0}; };
  const SettingRows rows = setting_rows(settings, {10}, {6}, replayed, {});
  REQUIRE(rows.rows.size() == 1);
  CHECK(rows.rows.front().seconds.value == 3);
  CHECK(rows.rest.value == 1);
}

TEST_CASE("the first sentence names the only setting that differs", "[explain]") {
  const Runs runs;
  const Explanation e = explain(
      runs.with({}), runs.with({{"strategy.zero_optimization.overlap_comm", "false"}}), few());
  CHECK(summary_text(e).find("strategy.zero_optimization.overlap_comm (true in A, false in B) "
                             "carries all of it") != std::string::npos);
  CHECK(e.settings->rows.front().seconds.value == Approx(e.gap().value).epsilon(1e-9));
}

TEST_CASE("a default that follows from another setting is a setting of its own", "[explain]") {
  const Runs runs;
  const NamedStep a = runs.with({}), b = runs.with({{"strategy.zero", "2"}});
  const auto settings = differing_settings(source_data(), source_of(a), source_of(b));
  CHECK(std::ranges::any_of(settings, [](const DifferingSetting& each) {
    return each.key == "strategy.zero_optimization.overlap_comm" && !each.said_a && !each.said_b;
  }));
}

}  // namespace stepsim
