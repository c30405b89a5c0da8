#include "scenarios/foreign/programs/hf/trl_grpo.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "scenarios/foreign/table/grpo_source.hpp"
#include "topology/catalog.hpp"

namespace stepsim {
namespace {

struct Machines {
  std::int64_t gpus = 1, nodes = 1;

  std::int64_t of_a_node() const { return gpus / nodes; }
};

struct Server {
  std::int64_t size = 1, copies = 1;
  std::string size_key, copies_key;

  std::int64_t gpus() const { return size * copies; }
};

Server server_of(MappedSource& source, const TrlGrpoWords& words) {
  Server server;
  server.size_key = fmt::format("{}tensor_parallel_size", words.server);
  server.copies_key = fmt::format("{}data_parallel_size", words.server);
  server.size = source.whole(server.size_key, 1, 1, 64);
  server.copies = source.whole(server.copies_key, 1, 1, 1 << 10);
  return server;
}

// Unsloth takes the engine that was loaded with the model, whatever use_vllm says
// (unsloth/models/rl.py).
bool has_engine(MappedSource& source, const TrlGrpoWords& words) {
  return source.on("fast_inference") || source.on(fmt::format("{}use_vllm", words.trainer));
}

// Older releases of TRL know no vllm_mode: 0.14 and 0.15 place one engine behind the learners
// (vllm_device), 0.16 has nothing but a server.
std::string mode_of(MappedSource& source, const TrlGrpoWords& words) {
  const auto trl = [&](std::string_view key) { return fmt::format("{}{}", words.trainer, key); };
  if (source.root().has("unsloth") && !source.says(trl("vllm_mode"))) return "colocate";
  std::string said = source.text(trl("vllm_mode"));
  if (!said.empty()) return said;
  bool apart = false;
  for (const std::string_view key : {"vllm_device", "vllm_server_host", "vllm_server_base_url"})
    apart = source.says(trl(key)) || apart;
  if (const std::string device = source.text(trl("vllm_device")); device == "cuda:0")
    source.note(
        "vllm_device: cuda:0: the engine shares the GPU of the first learner; one of its own is "
        "counted");
  return apart ? "server" : std::string(words.mode);
}

// Returns the learners on each node. Those that a launcher starts fill nodes from the first one,
// and the server is on the rest of the last of these or behind them; else they are on all GPUs but
// the server's. None: there is no room.
std::vector<std::int64_t> learners_beside(const GpusOfSource& launched, const Server& server,
                                          const Machines& machines) {
  const std::int64_t node = machines.of_a_node();
  if (launched.gpus <= 0) {
    if (server.gpus() >= machines.gpus || server.gpus() > node) return {};
    std::vector<std::int64_t> learners(static_cast<std::size_t>(machines.nodes), node);
    learners.back() -= server.gpus();
    return learners;
  }
  const std::int64_t nodes = std::max<std::int64_t>(1, launched.nodes),
                     each = launched.gpus / nodes, behind = (machines.nodes - nodes) * node,
                     beside = node - each;
  if (nodes > machines.nodes || beside < 0 || server.gpus() > behind + beside) return {};
  std::vector<std::int64_t> learners(static_cast<std::size_t>(machines.nodes), 0);
  std::fill_n(learners.begin(), nodes, each);
  return learners;
}

// Engines have GPUs of their own on the last node, or work on those of the learners in turn.
std::int64_t put_placement(MappedSource& source, const TrlGrpoWords& words,
                           const Machines& machines) {
  const auto trl = [&](std::string_view key) { return fmt::format("{}{}", words.trainer, key); };
  const std::string mode_key = trl(source.says(trl("vllm_device")) ? "vllm_device" : "vllm_mode"),
                    mode = mode_of(source, words);
  if (mode == "colocate") {
    source.put("job.layout", "colocated", mode_key);
    // Unsloth's engine is made with the model, and has half of the GPU unless it is told otherwise:
    // unsloth/models/loader.py of github.com/unslothai/unsloth @0050c73.
    const bool unsloth = source.on("fast_inference");
    const std::string size = trl("vllm_tensor_parallel_size"),
                      share = unsloth ? std::string("gpu_memory_utilization")
                                      : trl("vllm_gpu_memory_utilization");
    source.put("job.vllm_tensor_parallel_size", source.whole(size, 1, 1, 64), size);
    source.put("job.vllm_gpu_memory_utilization",
               fmt::format("{}", source.number(share, unsloth ? 0.5 : 0.3, 0.01, 1)), share);
    // trl/generation/vllm_generation.py gives the weights up.
    const bool sleeps = source.on(trl("vllm_enable_sleep_mode"));
    source.put("job.vllm_sleep_level", sleeps ? "2" : "0", trl("vllm_enable_sleep_mode"),
               sleeps ? "" : "engines keep their memory while GPUs learn");
    if (unsloth && !sleeps)
      source.note("weights that Unsloth's engine and its learner share are counted twice");
    return machines.gpus;
  }
  if (mode != "server") {
    source.problem(mode_key, fmt::format("expected server or colocate, found \"{}\"", mode));
    return machines.gpus;
  }
  const Server server = server_of(source, words);
  source.put("job.vllm_tensor_parallel_size", server.size, server.size_key);
  source.put("job.vllm_num_engines", server.copies, server.copies_key);
  const std::string share_key = fmt::format("{}gpu_memory_utilization", words.server);
  source.put("job.vllm_gpu_memory_utilization",
             fmt::format("{}", source.number(share_key, 0.9, 0.01, 1)), share_key);
  const std::vector<std::int64_t> learners = learners_beside(words.launched, server, machines);
  const std::int64_t all = std::accumulate(learners.begin(), learners.end(), std::int64_t{0});
  if (all <= 0) {
    source.problem(server.size_key,
                   fmt::format("a server on {} GPUs leaves no {} on {} x {}: name more "
                               "with --cluster and --nodes",
                               server.gpus(),
                               words.launched.gpus > 0
                                   ? fmt::format("room for {} learners", words.launched.gpus)
                                   : std::string("learner"),
                               machines.nodes, machines.of_a_node()));
    return 1;
  }
  source.put("job.num_learners_per_node", fmt::format("[{}]", fmt::join(learners, ", ")), mode_key,
             "a server on GPUs of its own, learners on the others");
  return all;
}

// Learners generate for themselves, every one its share of the rows.
void put_own_generation(MappedSource& source, const TrlGrpoWords& words) {
  const auto trl = [&](std::string_view key) { return fmt::format("{}{}", words.trainer, key); };
  const std::string paged = trl("use_transformers_paged"),
                    continuous = trl("use_transformers_continuous_batching"),
                    gathered = trl("ds3_gather_for_generation");
  const bool batches = source.on(continuous), pages = batches || source.on(paged);
  const bool unsloth = !pages && source.on("unsloth");  // FastLanguageModel's models
  source.put("engine",
             pages     ? "transformers-paged"
             : unsloth ? "unsloth"
                       : "transformers",
             pages ? batches ? continuous : paged : trl("use_vllm"),
             fmt::format("answers by {} {}", unsloth ? "Unsloth's" : "transformers'",
                         pages ? "generate_batch" : "generate"));
  source.put("job.layout", "colocated", "");
  const bool whole = source.on(gathered, true);
  source.put("job.gather_whole_model", whole, gathered,
             whole ? "ZeRO-3 gathers the weights once for each call"
                   : "every layer is gathered for every token");
}

// Returns what a key that is left out means: to the release, or else to all that are described.
double usual(MappedSource& source, const std::string& key, double otherwise) {
  const std::string said = source.says(key) ? "" : source.text(key);
  return said.empty() ? otherwise : std::strtod(said.c_str(), nullptr);
}

// Returns the micro-batches of a call of the generation. Releases that have no key for it say so
// themselves.
std::int64_t steps_of_call(MappedSource& source, const TrlGrpoWords& words, std::int64_t together) {
  const std::string size = fmt::format("{}generation_batch_size", words.trainer),
                    steps = fmt::format("{}steps_per_generation", words.trainer);
  const std::int64_t rows = std::max<std::int64_t>(together / words.accumulation, 1),
                     all = source.whole(size, 0, 0, most_tokens);
  if (all > 0 && all % rows != 0)
    source.problem(size,
                   fmt::format("{} is no multiple of the {} rows of a micro-batch", all, rows));
  if (all > 0) return std::max<std::int64_t>(all / rows, 1);
  return source.whole(steps,
                      std::llround(usual(source, steps, static_cast<double>(words.accumulation))),
                      1, most_tokens);
}

// Learners find their tokens' odds once more before they learn where these may have changed since:
// several updates follow, or an engine's own are mistrusted.
void put_scores(MappedSource& source, const TrlGrpoWords& words, std::int64_t rounds) {
  const std::string corrects = fmt::format("{}vllm_importance_sampling_correction", words.trainer);
  if (words.leave_one_out)
    source.put("job.always_score", true, "", "odds of whole answers are kept beside their rewards");
  else if (has_engine(source, words) && source.on(corrects))
    source.put("job.always_score", true, corrects, "beside the engine's own odds");
  else if (rounds > 1)
    source.put("job.always_score", true, fmt::format("{}num_iterations", words.trainer));
}

}  // namespace

GpusOfSource with_server(MappedSource& source, const TrlGrpoWords& words, GpusOfSource learners) {
  if (learners.gpus <= 0 || !has_engine(source, words) || mode_of(source, words) != "server")
    return learners;
  learners.each = 0;
  learners.learners_alone = true;
  return beside_server(std::move(learners), server_of(source, words).gpus());
}

void put_trl_grpo(MappedSource& source, const TrlGrpoWords& words) {
  const auto trl = [&](std::string_view key) { return fmt::format("{}{}", words.trainer, key); };
  source.put("job.method", "grpo", "");
  Machines machines;
  if (const auto& cluster = source.around().cluster)
    machines = {static_cast<std::int64_t>(cluster->ranks()),
                static_cast<std::int64_t>(cluster->nodes)};
  const bool engine = has_engine(source, words);
  if (!engine) put_own_generation(source, words);
  const std::int64_t learners = engine ? put_placement(source, words, machines) : machines.gpus;
  const std::string samples_key = trl("num_generations"),
                    response_key = trl("max_completion_length");
  const std::int64_t samples = source.whole(samples_key, words.samples, 2, most_rows),
                     response =
                         source.whole(response_key,
                                      std::llround(usual(source, response_key,
                                                         static_cast<double>(words.response))),
                                      1, most_tokens),
                     together = words.rows * words.accumulation * learners;
  const std::int64_t rounds = source.whole(trl("num_iterations"), 1, 1, 1 << 10),
                     steps = steps_of_call(source, words, together);
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
  // A step that is learned from what several calls brought.
  const bool parts = generated < together && together % generated == 0;
  const std::int64_t all = parts ? together : generated;
  if (parts && !engine)
    source.put("job.generate_calls", together / generated, trl("steps_per_generation"),
               fmt::format("of {} completions, for the {} of a step", generated, together));
  source.put("job.num_unique_prompts_rollout", all / samples, words.rows_key,
             fmt::format("{} completions in groups of {}", all, samples));
  source.put("job.num_samples_per_prompt_rollout", samples, samples_key);
  source.put("job.max_prompt_token_length", words.longest_prompt, words.prompt_key);
  source.put("job.response_length", response, response_key);
  source.put("job.pack_length", words.rows * (words.longest_prompt + response), words.rows_key,
             fmt::format("{} rows of {} tokens", words.rows, words.longest_prompt + response));
  source.put("job.batching", parts ? "rows" : "padded", "",
             "rows are as long as the longest of those generated with them");
  put_updates(source, all, std::min(together, all), words.rows_key);
  if (rounds > 1) source.put("job.num_epochs", rounds, trl("num_iterations"));
  put_scores(source, words, rounds);
  const double beta = usual(source, trl("beta"), words.leave_one_out ? 0.05 : 0);
  source.put("job.load_ref_policy", source.number(trl("beta"), beta, 0, 1e6) > 0, trl("beta"));
  if (const double made = source.number("max_steps", -1, -1, 1e12); made > 0)
    source.put("job.total_episodes", fmt::format("{:.0f}", made * static_cast<double>(together)),
               "max_steps", fmt::format("{:.0f} of {} completions", made, together));
  if (engine)
    source.put("job.gather_whole_model", false, "", "weights are gathered tensor by tensor");
  source.put("job.async_steps", "0", "", "learners and engines work in turn");
  source.put("job.deepspeed_zpg", "1", "", "no second copy of the parameters");
  assume_responses(source);
}

}  // namespace stepsim
