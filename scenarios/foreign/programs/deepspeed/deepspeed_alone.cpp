#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "scenarios/foreign/programs/programs.hpp"
#include "scenarios/foreign/table/assumed.hpp"

namespace stepsim {
namespace {

// A key of the scenario that a DeepSpeed file does not hold, and what the trainer's default is.
struct TrainerDefault {
  std::string_view path, value, what, taken, why;
};
constexpr std::array trainer_defaults{
    TrainerDefault{"job.sequence", "4096", "length of rows", "4096 tokens", "a usual one"},
    TrainerDefault{"strategy.checkpointing", "none", "checkpointing", "none",
                   "the trainer's default"}};
// The same, where the file may say it itself.
struct BatchDefault {
  std::string_view path, value, key;
};
constexpr std::array batch_defaults{
    BatchDefault{"job.micro_batch", "8", "train_micro_batch_size_per_gpu"},
    BatchDefault{"job.gradient_accumulation", "1", "gradient_accumulation_steps"}};

bool says_a_value(const Table& source, std::string_view key) {
  return source.has(key) && source.text_or(key, "") != "auto";
}

// Returns the GPUs that all three numbers of a batch mean together.
GpusOfSource gpus_of_batches(const Table& root) {
  std::int64_t numbers[3]{};
  std::size_t i = 0;
  for (const std::string_view key :
       {"train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"}) {
    if (!says_a_value(root, key)) return {};
    numbers[i++] = root.integer(key, 1, 1 << 30);
  }
  const auto [batch, rows, turns] = numbers;
  const std::int64_t each = rows * turns;
  if (each <= 0 || batch % each != 0) return {};
  return {.gpus = batch / each,
          .nodes = 0,
          .why = fmt::format("a batch of {} rows is {} x {} on so many", batch, rows, turns)};
}

}  // namespace

Translation translate_deepspeed(const SourceQuestion& question, const Document& source) {
  const Table root = source.root();
  Translation result;
  result.file = question.file;
  result.program = "DeepSpeed";
  const auto put = [&](std::string_view path, std::string_view value, std::string remark) {
    result.lines.push_back({std::string(path), std::string(value), "", 0, std::move(remark)});
  };
  put("name", yaml_quoted(std::filesystem::path(question.file).stem().string()), "");
  if (!question.decides("model"))
    root.problem("",
                 "is a DeepSpeed file, which names no model: --model NAME does; `stepsim list "
                 "models` names them, and the path of a config.json will do");
  assume_machine(question, root, result, gpus_of_batches(root));
  source.finish(Leftovers::allowed);
  const SourceSurroundings around = surroundings_of(question, document_of(result));
  const bool amd = around.cluster && around.cluster->gpu.vendor == "amd";
  put("stack", first_stack(question.data, {amd ? "deepspeed-hf-rocm" : "deepspeed-hf"}),
      fmt::format("Hugging Face models on {} GPUs", amd ? "amd" : "nvidia"));
  for (const TrainerDefault& each : trainer_defaults) {
    if (question.decides(each.path)) continue;
    put(each.path, each.value, std::string(each.why));
    result.assumptions.push_back({std::string(each.what), std::string(each.taken),
                                  fmt::format("the file does not say; {}", each.why),
                                  fmt::format("--set {}=...", each.path)});
  }
  for (const BatchDefault& each : batch_defaults) {
    if (question.decides(each.path) || says_a_value(root, each.key)) continue;
    put(each.path, each.value, "the trainer's default");
    if (!root.has("train_batch_size") || !says_a_value(root, "train_batch_size"))
      result.assumptions.push_back({std::string(each.key), std::string(each.value),
                                    "the file leaves it to the trainer, whose default it is",
                                    fmt::format("--set {}=...", each.path)});
  }
  put("strategy.deepspeed", yaml_quoted(question.file), "");
  assume_data(question, {}, result);
  return result;
}

}  // namespace stepsim
