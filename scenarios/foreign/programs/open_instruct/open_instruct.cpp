#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "scenarios/foreign/programs/hf/trainer_reader.hpp"
#include "scenarios/foreign/programs/programs.hpp"
#include "scenarios/foreign/table/grpo_source.hpp"
#include "scenarios/foreign/table/trainer_adapters.hpp"
#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"

namespace stepsim {
namespace {

constexpr std::string_view learners_key = "num_learners_per_node";
constexpr std::int64_t gpus_of_a_node = 8;

std::vector<std::int64_t> read_open_instruct_learners(MappedSource& source) {
  const std::string said = source.text(learners_key);
  const std::vector<std::string> words =
      said.starts_with('[') ? source.texts(learners_key) : std::vector{said.empty() ? "1" : said};
  std::vector<std::int64_t> learners;
  for (const std::string& word : words) {
    const auto count = number_from<std::int64_t>(word);
    if (!count || *count < 0) {
      source.problem(learners_key, fmt::format("expected whole numbers, found \"{}\"", word));
      return {1};
    }
    learners.push_back(*count);
  }
  return learners;
}

// Returns nodes for all learners, and for the engines that find no room beside them.
GpusOfSource room_for(MappedSource& source, const std::vector<std::int64_t>& learners) {
  const std::int64_t engines = source.whole("vllm_num_engines", 1, 1, 1 << 20),
                     each = source.whole("vllm_tensor_parallel_size", 1, 1, 64);
  std::int64_t nodes = 0, placed = 0;
  constexpr std::int64_t most_nodes = 1 << 13;
  while (nodes < most_nodes &&
         (nodes < static_cast<std::int64_t>(learners.size()) || placed < engines)) {
    const auto at = static_cast<std::size_t>(nodes++);
    const std::int64_t taken = at < learners.size() ? learners[at] : 0;
    placed += std::max<std::int64_t>(gpus_of_a_node - taken, 0) / each;
    if (each > gpus_of_a_node) break;
  }
  return {.gpus = nodes * gpus_of_a_node,
          .nodes = nodes,
          .why = "learners and engines find room on so many"};
}

// The list ends where nodes without learners begin; a single number of a scenario means all nodes.
void put_places(MappedSource& source, std::vector<std::int64_t> learners) {
  const auto& cluster = source.around().cluster;
  if (cluster && cluster->nodes > learners.size()) learners.push_back(0);
  source.put("job.num_learners_per_node", fmt::format("[{}]", fmt::join(learners, ", ")),
             learners_key);
}

}  // namespace

Translation translate_open_instruct(const SourceQuestion& question, const Document& document) {
  if (question.launch != nullptr && question.launch->program.find("grpo_fast") == std::string::npos)
    throw UserError({{question.file, question.launch->line, "",
                      fmt::format("{} of open-instruct is not read yet; expected grpo_fast.py, "
                                  "finetune.py or dpo_tune_cache.py",
                                  question.launch->program)}});
  MappedSource source(question, document, "open-instruct", "programs/open_instruct/open-instruct");
  const std::vector<std::int64_t> learners = read_open_instruct_learners(source);
  const GpusOfSource launched = gpus_of(question);
  const GpusOfSource gpus = launched.gpus > 0 ? launched : room_for(source, learners);
  source.put_model("model_name_or_path");
  assume_machine(question, source.root(), source.result(), gpus);
  source.look_around();
  source.put_stack();
  source.put("job.method", "grpo", "");
  put_places(source, learners);
  if (source.says("async_mode") && !source.on("async_mode"))
    source.put("job.async_steps", "0", "async_mode");
  for (const std::string_view name :
       {"filter_zero_std_samples", "gather_whole_model", "inflight_updates", "load_ref_policy"})
    if (const std::string key = fmt::format("no_{}", name); source.on(key))
      source.put(fmt::format("job.{}", name), false, key);
  source.text("num_nodes");
  if (source.on("single_gpu_mode"))
    source.without("single_gpu_mode", "learner and engine on GPUs of their own");
  source.put("strategy.optimizer", "adamw", "");
  assume_responses(source);
  source.put_mapped();
  return source.finish();
}

Translation translate_open_instruct_tuning(const SourceQuestion& question, const Document& source) {
  const bool pairs =
      question.launch != nullptr && question.launch->program.find("dpo") != std::string::npos;
  const std::string loss = source.root().text_or("loss_type", "dpo_norm");
  const bool alone = loss == "simpo" || loss == "wpo";
  TrainerReader reader(question, source,
                       {.name = "open-instruct",
                        .table = "programs/open_instruct/open-instruct-tuning",
                        .training = !pairs  ? HfTraining::sft
                                    : alone ? HfTraining::alone
                                            : HfTraining::dpo,
                        .length_key = "max_seq_length",
                        .length = 2048});
  MappedSource& words = reader.source();
  const bool liger = words.on("use_liger_kernel");
  reader.read_surroundings(liger, "use_liger_kernel");
  reader.read_job({.steps = "max_train_steps",
                   .epochs = words.says("num_epochs") ? "num_epochs" : "num_train_epochs",
                   .usual_epochs = 2,
                   .stores_reference = pairs});
  reader.read_sharding();
  if (words.on("use_8bit_optimizer"))
    words.put("strategy.optimizer", "adamw_8bit", "use_8bit_optimizer");
  reader.read_checkpointing("gradient_checkpointing", words.on("gradient_checkpointing"));
  words.put("strategy.attention", words.on("use_flash_attn", true) ? "flash" : "sdpa",
            "use_flash_attn");
  words.put("strategy.cross_entropy",
            pairs   ? "logits_16"
            : liger ? "fused"
                    : "logits",
            "", pairs ? "of pairs, over all logits" : "");
  const bool quantised = words.on("use_qlora");
  if (words.on("use_lora") || quantised)
    put_adapter(words, {.rank_key = "lora_rank",
                        .modules_key = "use_lora",
                        .usual_rank = 64,
                        .modules = std::vector<std::string>{"all-linear"},
                        .format = bitsandbytes_format(quantised ? 4 : 0),
                        .format_key = "use_qlora",
                        .dropout_key = "lora_dropout"});
  return reader.finish();
}

}  // namespace stepsim
