#include "scenarios/import/grpo_source.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace stepsim {

void assume_responses(MappedSource& source) {
  if (source.question().decides("job.response_lengths")) return;
  source.result().assumptions.push_back({"length of responses",
                                         "a third of the limit on average, log-normal",
                                         "the file does not say; time depends on it",
                                         "--set 'job.response_lengths={mean: 700, sigma: 0.9}'"});
}

void put_learners(MappedSource& source, const LearnersOfSource& learners) {
  const auto put = [&](std::string_view path, std::int64_t size, const std::string& key) {
    if (size > 1) source.put(path, std::to_string(size), key);
  };
  put("strategy.tensor_parallel.size", learners.tensor, learners.tensor_key);
  if (learners.tensor > 1)
    source.put("strategy.tensor_parallel.sequence", learners.sequence ? "true" : "false",
               learners.sequence_key);
  put("strategy.sequence_parallel.ring", learners.context, learners.context_key);
  if (source.around().model && source.around().model->experts) {
    source.put("strategy.moe.kernel", "grouped", "", "one kernel over all experts");
    put("strategy.moe.expert_parallel", learners.experts, learners.experts_key);
  }
  put("strategy.pipeline_parallel.size", learners.stages, learners.stages_key);
}

void put_updates(MappedSource& source, std::int64_t batch, std::int64_t part,
                 std::string_view key) {
  const std::int64_t updates = std::max<std::int64_t>(batch / std::max<std::int64_t>(part, 1), 1);
  source.put("job.num_mini_batches", std::to_string(updates), key,
             fmt::format("{} of {}", part, batch));
}

}  // namespace stepsim
