#include <fmt/format.h>

#include <algorithm>

#include "scenarios/foreign/programs/megatron/megatron.hpp"
#include "scenarios/foreign/table/grpo_source.hpp"

namespace stepsim {
namespace {

struct SwiftEngines {
  bool together = false;
  std::int64_t size = 1, copies = 1;

  std::int64_t gpus() const { return together ? 0 : size * copies; }
};

SwiftEngines swift_engines(MappedSource& source) {
  const std::string mode = source.text("vllm-mode");
  if (mode != "colocate" && mode != "server")
    source.problem("vllm-mode", fmt::format("expected colocate or server, found \"{}\"", mode));
  return {.together = mode != "server",
          .size = source.whole("vllm-tensor-parallel-size", 1, 1, 64),
          .copies = source.whole("vllm-data-parallel-size", 1, 1, 1 << 10)};
}

void put_swift_engines(MappedSource& source, const SwiftEngines& engines,
                       const GpusOfSource& learners) {
  source.put("job.layout", engines.together ? "colocated" : "separate", "vllm-mode");
  source.put("job.vllm_tensor_parallel_size", engines.size, "vllm-tensor-parallel-size");
  if (source.says("use-vllm") && !source.on("use-vllm"))
    source.problem("use-vllm",
                   "answers that transformers generates are not modelled; expected true");
  const bool model = source.on("offload-model"), states = source.on("offload-optimizer");
  const std::int64_t level = source.whole("sleep-level", 0, 0, 2);
  if (engines.together) {
    source.put("job.park_learners", model && states, "offload-model");
    if (model != states)
      source.without(model ? "offload-model" : "offload-optimizer",
                     "parameters and states wait on the host together or not at all");
    return source.put("job.vllm_sleep_level", level, "sleep-level");
  }
  const auto& cluster = source.around().cluster;
  const std::int64_t all = cluster ? static_cast<std::int64_t>(cluster->ranks()) : 0;
  const std::int64_t own = learners.gpus > 0 ? learners.gpus : all - engines.gpus();
  source.put("job.learner_gpus", std::max<std::int64_t>(1, own), "", "what the launcher starts");
  source.put("job.vllm_num_engines", engines.copies, "vllm-mode");
  source.put("job.async_steps", "0", "", "learners and engines work in turn");
  source.put("job.inflight_updates", false, "", "answers are waited for before weights change");
  source.put("job.sync_protocol", "buckets", "", "SWIFT_UPDATE_WEIGHTS_BUCKET_SIZE is 512 MiB");
  source.put("job.sync_bucket", "536870912 B", "");
}

void put_swift_batch(MappedSource& source) {
  constexpr std::string_view batch_key = "global-batch-size", samples_key = "num-generations";
  const std::int64_t batch = source.whole(batch_key, 16, 1, most_tokens),
                     steps = source.whole("steps-per-generation", 1, 1, most_tokens),
                     samples = source.whole(samples_key, 8, 1, most_rows),
                     answers = source.whole("generation-batch-size", batch * steps, 1, most_tokens);
  if (answers % samples != 0)
    return source.problem(samples_key, fmt::format("{} answers of a step are no whole number of "
                                                   "groups of {}",
                                                   answers, samples));
  source.put("job.num_unique_prompts_rollout", answers / samples, batch_key,
             fmt::format("{} answers in groups of {}", answers, samples));
  source.put("job.num_samples_per_prompt_rollout", samples, samples_key);
  put_updates(source, answers, std::min(batch, answers), batch_key);
  if (source.on("dynamic-sample"))
    source.without("dynamic-sample",
                   "no group is put aside; --set job.zero_std_fraction=X with "
                   "job.filter_zero_std_samples=true counts such");
  const double made = source.number("train-iters", 0, 0, 1e12);
  if (made > 0)
    source.put("job.total_episodes", fmt::format("{:.0f}", made * static_cast<double>(batch)),
               "train-iters", fmt::format("{:.0f} updates of {} answers", made, batch));
}

void put_swift_rows(MappedSource& source) {
  constexpr std::string_view prompt_key = "max-length", completion_key = "max-completion-length",
                             rows_key = "micro-batch-size";
  const std::int64_t prompt = source.whole(prompt_key, 2048, 1, most_tokens),
                     answer = source.whole(completion_key, 512, 1, most_tokens),
                     rows = source.whole(rows_key, 1, 1, most_rows);
  source.put("job.max_prompt_token_length", prompt, prompt_key);
  source.put("job.response_length", answer, completion_key);
  if (source.on("padding-free", true)) {
    source.put("job.batching", "shares", "", "each learner takes as many answers");
    return source.put("job.pack_rows", rows, rows_key);
  }
  source.put("job.batching", "rows", "padding-free");
  source.put("job.pack_length", rows * (prompt + answer), rows_key);
}

}  // namespace

GpusOfSource swift_grpo_machine(MappedSource& source, GpusOfSource learners) {
  const std::int64_t server = swift_engines(source).gpus();
  if (server == 0 || learners.gpus <= 0) return learners;
  return beside_server(std::move(learners), server);
}

void put_swift_grpo(MappedSource& source, const GpusOfSource& learners) {
  source.put("job.method", "grpo", "rlhf-type");
  put_swift_engines(source, swift_engines(source), learners);
  put_swift_batch(source);
  put_swift_rows(source);
  const bool compared = source.number("beta", 0.04, -1e6, 1e6) != 0;
  source.put("job.load_ref_policy", compared, "beta");
  source.put("job.always_score", true, "", "log-probabilities are found before every update");
  source.put("job.gather_whole_model", false, "", "weights are gathered tensor by tensor");
  source.put("job.deepspeed_zpg", "1", "", "no second copy of the parameters");
  assume_responses(source);
}

}  // namespace stepsim
