#include "scenarios/foreign/table/grpo_source.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "workloads/grpo/lengths.hpp"

namespace stepsim {

void assume_responses(MappedSource& source) {
  if (source.question().decides("job.response_lengths")) return;
  const auto& lines = source.result().lines;
  const auto limit = std::ranges::find(lines, "job.response_length", &TranslatedLine::path);
  if (limit != lines.end()) {
    const double tokens = std::strtod(limit->value.c_str(), nullptr);
    const auto [mean, low, high] = guessed_lengths;
    source.put("job.response_lengths.mean",
               fmt::format("{{value: {:.0f}, low: {:.0f}, high: {:.0f}, source: how long responses "
                           "are is not in the file}}",
                           std::max(1.0, mean * tokens), std::max(1.0, low * tokens),
                           std::max(1.0, high * tokens)),
               "", "taken");
  }
  source.result().assumptions.push_back({"length of responses",
                                         "a third of the limit on average, log-normal (a sixth "
                                         "to nearly all of it)",
                                         "the file does not say; time depends on it",
                                         "--set 'job.response_lengths={mean: 700, sigma: 0.9}'"});
}

void put_rounds(MappedSource& source, std::int64_t prompts, std::string_view key,
                std::string_view filter) {
  source.put("job.prompts_per_round", prompts, key);
  source.put("job.filter_zero_std_samples", true, filter);
  constexpr std::string_view share = "job.zero_std_fraction";
  if (source.question().decides(share)) return;
  source.put(share,
             "{value: 0.4, low: 0, high: 0.7, source: how many groups have no signal is not in the "
             "file}",
             "", "taken");
  source.result().assumptions.push_back(
      {"groups without a signal", "4 in 10 (none to 7 in 10)",
       "the file does not say; how many rounds a step takes depends on it",
       "--set job.zero_std_fraction=0.2"});
}

namespace {

// Shares evenly, as Megatron does, what the stages at both ends leave over.
void put_stage_layers(MappedSource& source, const LearnersOfSource& learners, std::int64_t all) {
  if (learners.first_layers == 0 && learners.last_layers == 0) return;
  const std::int64_t ends =
      (learners.first_layers > 0 ? 1 : 0) + (learners.last_layers > 0 ? 1 : 0);
  const std::int64_t between = learners.stages - ends,
                     left = all - learners.first_layers - learners.last_layers;
  if (between < 0 || left < 0 || (between == 0 ? left != 0 : left % between != 0)) return;
  std::vector<std::int64_t> layers(static_cast<std::size_t>(between),
                                   between > 0 ? left / between : 0);
  if (learners.first_layers > 0) layers.insert(layers.begin(), learners.first_layers);
  if (learners.last_layers > 0) layers.push_back(learners.last_layers);
  source.put("strategy.pipeline_parallel.layers", fmt::format("[{}]", fmt::join(layers, ", ")),
             learners.stages_key);
}

}  // namespace

LearnersOfSource megatron_learners(MappedSource& source, const std::string& block) {
  LearnersOfSource learners{.tensor_key = block + "tensor_model_parallel_size",
                            .context_key = block + "context_parallel_size",
                            .stages_key = block + "pipeline_model_parallel_size",
                            .experts_key = block + "expert_model_parallel_size",
                            .expert_tensor_key = block + "expert_tensor_parallel_size",
                            .sequence_key = block + "sequence_parallel"};
  const auto whole = [&](const std::string& key, std::int64_t fallback) {
    return source.whole(key, fallback, std::min<std::int64_t>(fallback, 1), most_ranks);
  };
  learners.tensor = whole(learners.tensor_key, 1);
  learners.context = whole(learners.context_key, 1);
  learners.stages = whole(learners.stages_key, 1);
  learners.experts = whole(learners.experts_key, 1);
  learners.expert_tensor = whole(learners.expert_tensor_key, learners.tensor);
  learners.sequence = source.on(learners.sequence_key, true);
  const std::string layers = block + "override_transformer_config.num_layers_in_";
  learners.first_layers = whole(layers + "first_pipeline_stage", 0);
  learners.last_layers = whole(layers + "last_pipeline_stage", 0);
  return learners;
}

void put_learners(MappedSource& source, const LearnersOfSource& learners) {
  const auto put = [&](std::string_view path, std::int64_t size, const std::string& key) {
    if (size > 1) source.put(path, size, key);
  };
  put("strategy.tensor_parallel.size", learners.tensor, learners.tensor_key);
  if (learners.tensor > 1)
    source.put("strategy.tensor_parallel.sequence", learners.sequence, learners.sequence_key);
  put("strategy.sequence_parallel.ring", learners.context, learners.context_key);
  if (source.around().model && source.around().model->experts) {
    source.put("strategy.moe.kernel", "grouped", "", "one kernel over all experts");
    put("strategy.moe.expert_parallel", learners.experts, learners.experts_key);
    if (learners.tensor > 1 && learners.experts > 1)
      source.put("strategy.moe.expert_tensor_parallel", learners.expert_tensor,
                 learners.expert_tensor_key);
  }
  put("strategy.pipeline_parallel.size", learners.stages, learners.stages_key);
  if (learners.stages > 1 && source.around().model)
    put_stage_layers(source, learners, source.around().model->layers);
}

GpusOfSource beside_server(GpusOfSource learners, std::int64_t server) {
  constexpr std::int64_t usual = 8;  // of a node
  const std::int64_t nodes = std::max<std::int64_t>(1, learners.nodes);
  learners.why += fmt::format(", and a server has {} beside them", server);
  if (nodes == 1 && learners.gpus + server <= usual) {
    learners.gpus += server;
    return learners;
  }
  const std::int64_t each = learners.gpus / nodes;
  learners.nodes = nodes + (server + each - 1) / each;
  learners.gpus = each * learners.nodes;
  return learners;
}

void put_updates(MappedSource& source, std::int64_t batch, std::int64_t part,
                 std::string_view key) {
  const std::int64_t updates = std::max<std::int64_t>(batch / std::max<std::int64_t>(part, 1), 1);
  source.put("job.num_mini_batches", updates, key, fmt::format("{} of {}", part, batch));
}

}  // namespace stepsim
