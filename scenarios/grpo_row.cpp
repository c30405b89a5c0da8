#include "scenarios/grpo_row.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace stepsim {
namespace {

bool in_turn(const GrpoRow& row) {
  return row.policy_mode.starts_with("On");
}

void find_gaps(const GrpoRow& row, GrpoRowText& text) {
  const auto lack = [&](bool missing, std::string_view what) {
    if (missing) text.missing.emplace_back(what);
  };
  lack(row.model.empty(), "its model is not in the catalogue");
  lack(row.node.empty(), "its machine is not in the catalogue");
  lack(row.nodes == 0, "the number of nodes");
  lack(row.max_sequence == 0 || row.mean_sequence == 0, "the longest or the mean sequence");
  lack(row.generation_batch == 0, "responses of a step");
  lack(row.step_seconds == 0, "the time of a step");
  lack(row.train_tensor > 1 || row.train_expert > 1 || row.train_pipeline > 1,
       "learners with tensor, expert or pipeline parallelism");
  lack(!in_turn(row) && row.nodes < 2, "nodes that only generate");
}

}  // namespace

GrpoRowText express(const GrpoRow& row) {
  GrpoRowText text;
  find_gaps(row, text);
  if (!text.missing.empty()) return text;
  const auto assume = [&](std::string what) { text.assumed.push_back(std::move(what)); };
  const std::int64_t samples = row.samples > 0 ? row.samples : 16;
  if (row.samples == 0) assume("16 responses to a prompt");
  const std::int64_t prompt = std::min<std::int64_t>(256, row.max_sequence / 4);
  assume(fmt::format("prompts of {} tokens", prompt));
  assume("lengths with a long tail, sigma 0.9");
  assume("learners keep parameters and gradients whole (zero: 1)");
  const std::int64_t train = row.train_batch > 0 ? row.train_batch : row.generation_batch;
  std::string job;
  const auto key = [&](std::string_view name, const auto& value) {
    job += fmt::format("  {}: {}\n", name, value);
  };
  key("method", "grpo");
  if (in_turn(row)) {
    key("layout", "colocated");
  } else {
    assume("half of the nodes learn");
    std::string learners;
    for (std::int64_t node = 0; node < row.nodes / 2; ++node) learners += node > 0 ? ", 8" : "8";
    key("num_learners_per_node", "[" + learners + "]");
    key("async_steps", 1);
    key("inflight_updates", "false");
    key("drop_stale_results", "false");
  }
  key("vllm_tensor_parallel_size", std::max<std::int64_t>(1, row.engine_parallel));
  key("num_unique_prompts_rollout", std::max<std::int64_t>(1, row.generation_batch / samples));
  key("num_samples_per_prompt_rollout", samples);
  key("max_prompt_token_length", prompt);
  key("response_length", row.max_sequence - prompt);
  key("pack_length", row.max_sequence);
  key("num_mini_batches", std::max<std::int64_t>(1, row.generation_batch / train));
  key("deepspeed_zpg", 1);
  key("response_lengths",
      fmt::format("{{type: lognormal, mean: {}, sigma: 0.9}}",
                  std::max(1.0, row.mean_sequence - static_cast<double>(prompt))));
  std::string measured = fmt::format("  step_time: {} s\n", row.step_seconds);
  if (row.tokens_per_second_per_gpu > 0)
    measured += fmt::format("  tokens_per_second_per_gpu: {}\n", row.tokens_per_second_per_gpu);
  text.scenario = fmt::format(
      "name: \"{}\"\nmodel: {}\ncluster: {{node: {}, nodes: {}}}\nstack: {}\njob:\n{}"
      "strategy: {{zero: 1, checkpointing: full}}\nmeasured:\n{}  source: \"{}\"\n",
      row.id, row.model, row.node, row.nodes, row.stack.empty() ? "deepspeed-hf" : row.stack, job,
      measured, row.source);
  return text;
}

}  // namespace stepsim
