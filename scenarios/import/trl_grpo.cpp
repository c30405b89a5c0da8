#include "scenarios/import/trl_grpo.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "scenarios/import/grpo_source.hpp"
#include "topology/catalog.hpp"

namespace stepsim {
namespace {

struct Machines {
  std::int64_t gpus = 1, nodes = 1;
};

// Engines have GPUs of their own on the last node, or work on those of the learners in turn.
std::int64_t put_placement(MappedSource& source, const TrlGrpoWords& words,
                           const Machines& machines) {
  const auto trl = [&](std::string_view key) { return fmt::format("{}{}", words.trainer, key); };
  const std::string mode_key = trl("vllm_mode"), mode = source.text(mode_key, words.mode);
  if (mode == "colocate") {
    source.put("job.layout", "colocated", mode_key);
    // Unsloth's engine is made with the model, and has half of the GPU unless it is told otherwise:
    // unsloth/models/loader.py of github.com/unslothai/unsloth @0050c73.
    const bool unsloth = source.on("fast_inference");
    const std::string size = trl("vllm_tensor_parallel_size"),
                      share = unsloth ? std::string("gpu_memory_utilization")
                                      : trl("vllm_gpu_memory_utilization");
    source.put("job.vllm_tensor_parallel_size", std::to_string(source.whole(size, 1, 1, 64)), size);
    source.put("job.vllm_gpu_memory_utilization",
               fmt::format("{}", source.number(share, unsloth ? 0.5 : 0.3, 0.01, 1)), share);
    if (source.on(trl("vllm_enable_sleep_mode")))
      source.without(trl("vllm_enable_sleep_mode"), "engines stay in memory while learners work");
    return machines.gpus;
  }
  if (mode != "server") {
    source.problem(mode_key, fmt::format("expected server or colocate, found \"{}\"", mode));
    return machines.gpus;
  }
  const auto server = [&](std::string_view key) { return fmt::format("{}{}", words.server, key); };
  const std::string size_key = server("tensor_parallel_size"),
                    copies_key = server("data_parallel_size"),
                    share_key = server("gpu_memory_utilization");
  const std::int64_t size = source.whole(size_key, 1, 1, 64),
                     copies = source.whole(copies_key, 1, 1, 1 << 10),
                     of_a_node = machines.gpus / machines.nodes, engines = size * copies;
  source.put("job.vllm_tensor_parallel_size", std::to_string(size), size_key);
  source.put("job.vllm_num_engines", std::to_string(copies), copies_key);
  source.put("job.vllm_gpu_memory_utilization",
             fmt::format("{}", source.number(share_key, 0.9, 0.01, 1)), share_key);
  if (engines >= machines.gpus || engines > of_a_node) {
    source.problem(size_key, fmt::format("a server on {} GPUs leaves no learner on {} x {}: name "
                                         "more with --cluster and --nodes",
                                         engines, machines.nodes, of_a_node));
    return 1;
  }
  std::vector<std::string> learners(static_cast<std::size_t>(machines.nodes),
                                    std::to_string(of_a_node));
  learners.back() = std::to_string(of_a_node - engines);
  source.put("job.num_learners_per_node", fmt::format("[{}]", fmt::join(learners, ", ")), mode_key,
             "a server on GPUs of its own, learners on the others");
  return machines.gpus - engines;
}

}  // namespace

void put_trl_grpo(MappedSource& source, const TrlGrpoWords& words) {
  const auto trl = [&](std::string_view key) { return fmt::format("{}{}", words.trainer, key); };
  const std::string vllm = trl("use_vllm");
  if (!source.on(vllm) && !source.on("fast_inference"))
    return source.problem(vllm,
                          "answers that transformers generates are not modelled; expected "
                          "true");
  source.put("job.method", "grpo", "");
  Machines machines;
  if (const auto& cluster = source.around().cluster)
    machines = {static_cast<std::int64_t>(cluster->ranks()),
                static_cast<std::int64_t>(cluster->nodes)};
  const std::int64_t learners = put_placement(source, words, machines);
  const std::string samples_key = trl("num_generations"),
                    response_key = trl("max_completion_length");
  const std::int64_t samples = source.whole(samples_key, 8, 2, most_rows),
                     response = source.whole(response_key, words.response, 1, most_tokens),
                     together = words.rows * words.accumulation * learners;
  const std::int64_t rounds = source.whole(trl("num_iterations"), 1, 1, 1 << 10),
                     steps = source.whole(trl("steps_per_generation"), words.accumulation, 1,
                                          most_tokens);
  const std::int64_t generated = words.rows * steps * learners;
  if (generated % samples != 0)
    return source.problem(samples_key,
                          fmt::format("{} completions ({} x {} x {} learners) are no whole number "
                                      "of groups of {}{}",
                                      generated, words.rows, steps, learners, samples,
                                      source.question().launch != nullptr
                                          ? ""
                                          : "; --set cluster.gpus_per_node=N says how many GPUs it "
                                            "is launched on"));
  source.put("job.num_unique_prompts_rollout", std::to_string(generated / samples), words.rows_key,
             fmt::format("{} completions in groups of {}", generated, samples));
  source.put("job.num_samples_per_prompt_rollout", std::to_string(samples), samples_key);
  source.put("job.max_prompt_token_length", std::to_string(words.longest_prompt), words.prompt_key);
  source.put("job.response_length", std::to_string(response), response_key);
  source.put("job.pack_length", std::to_string(words.rows * (words.longest_prompt + response)),
             words.rows_key,
             fmt::format("{} rows of {} tokens", words.rows, words.longest_prompt + response));
  put_updates(source, generated, std::min(together, generated), words.rows_key);
  if (rounds > 1) source.put("job.num_epochs", std::to_string(rounds), trl("num_iterations"));
  const bool compared = source.number(trl("beta"), 0, 0, 1e6) > 0;
  source.put("job.load_ref_policy", compared ? "true" : "false", trl("beta"));
  if (const double made = source.number("max_steps", -1, -1, 1e12); made > 0)
    source.put("job.total_episodes", fmt::format("{:.0f}", made * static_cast<double>(together)),
               "max_steps", fmt::format("{:.0f} of {} completions", made, together));
  source.put("job.gather_whole_model", "false", "", "weights are gathered tensor by tensor");
  source.put("job.async_steps", "0", "", "learners and engines work in turn");
  source.put("job.deepspeed_zpg", "1", "", "no second copy of the parameters");
  assume_responses(source);
}

}  // namespace stepsim
