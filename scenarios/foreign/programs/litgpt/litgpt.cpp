#include <fmt/format.h>

#include <algorithm>

#include "scenarios/foreign/programs/programs.hpp"
#include "scenarios/foreign/table/trainer_adapters.hpp"
#include "scenarios/foreign/table/trainer_words.hpp"
#include "sim/base/error.hpp"

namespace stepsim {
namespace {

enum class Recipe : std::uint8_t { full, lora, pretrain };

// The program is "litgpt finetune_lora", "litgpt finetune" before the word "lora", or
// "finetune/lora.py"; a file alone is known by keys that one recipe has.
Recipe recipe_of(const SourceQuestion& question, const Table& root) {
  std::string name;
  if (const Launch* launch = question.launch; launch != nullptr) {
    name = launch->program;
    if (!launch->arguments.empty()) name += " " + launch->arguments.front().text;
  }
  if (name.find("adapter") != std::string::npos)
    throw UserError({{question.file, question.launch->line, "",
                      "LLaMA-Adapter is not modelled: `litgpt finetune_lora` and `litgpt "
                      "finetune_full` are"}});
  if (name.find("pretrain") != std::string::npos) return Recipe::pretrain;
  if (name.find("lora") != std::string::npos || root.has("lora_r")) return Recipe::lora;
  return root.has("checkpoint_dir") ? Recipe::full : Recipe::pretrain;
}

// Files say the model that a folder holds, a name of LitGPT's, or widths under a name.
std::string_view model_key(MappedSource& source) {
  for (const std::string_view key : {"checkpoint_dir", "model_name", "model.name"})
    if (source.says(key)) return key;
  return source.says("initial_checkpoint_dir") ? "initial_checkpoint_dir" : "model_name";
}

// `devices` is a number, or auto or -1 for all of a node; without a word it is one GPU.
GpusOfSource gpus_of_litgpt(MappedSource& source, Recipe recipe) {
  const std::string said = source.text("devices", recipe == Recipe::pretrain ? "auto" : "1");
  const std::int64_t nodes = source.whole("num_nodes", 1, 1, most_ranks);
  if (said == "auto" || said == "-1") return {.nodes = nodes > 1 ? nodes : 0};
  const std::int64_t each = source.whole("devices", 1, 1, most_ranks);
  return {.gpus = each * nodes,
          .nodes = nodes,
          .why = fmt::format("devices is {}{}", each, source.says("devices") ? "" : " by itself"),
          .each = each};
}

// A step's rows are shared out among the GPUs, and learned in micro-batches; both are rounded down.
void put_litgpt_batch(MappedSource& source) {
  const std::int64_t ranks = source.around().cluster ? source.around().cluster->ranks() : 1,
                     batch = source.whole("train.global_batch_size", 16, 1, 1'000'000'000),
                     micro = source.whole("train.micro_batch_size", 1, 1, most_rows);
  source.put("job.micro_batch", micro, "train.micro_batch_size");
  const std::int64_t pieces = batch / ranks / micro;
  if (pieces == 0)
    return source.problem(
        "train.global_batch_size",
        fmt::format("{} rows are fewer than micro-batch {} on {} GPUs", batch, micro, ranks));
  source.put("job.gradient_accumulation", pieces, "train.global_batch_size");
}

void put_litgpt_rows(MappedSource& source, Recipe recipe) {
  const bool stream = recipe == Recipe::pretrain;
  constexpr std::string_view key = "train.max_seq_length";
  std::int64_t length = source.whole(key, 0, 1, most_tokens);
  if (length == 0 && stream && source.around().model)
    length = source.around().model->longest_sequence;
  if (source.says(key)) {
    source.put("job.sequence", length, key);
  } else if (!source.question().decides("job.sequence")) {
    source.put("job.sequence", length > 0 ? length : 1024, key, "a usual one");
    source.result().assumptions.push_back(
        {std::string(length_of_rows), fmt::format("{} tokens", length > 0 ? length : 1024),
         stream ? "train.max_seq_length does not say: as long as the model takes"
                : "train.max_seq_length does not say, and rows are as long as their texts",
         "--set train.max_seq_length=N"});
  }
  source.put("job.method", "sft", "");
  source.put("job.packing", stream, "", stream ? "rows are cut out of a stream" : "");
  if (stream) source.put("job.fill", "1", "", "rows are cut out of a stream of documents");
  const std::int64_t steps = source.whole("train.max_steps", 0, 1, 1'000'000'000),
                     epochs = source.whole("train.epochs", stream ? 1 : 5, 1, 1'000'000),
                     tokens = source.whole("train.max_tokens", 0, 1, std::int64_t{1} << 60),
                     row = std::max<std::int64_t>(length, 1),
                     batch = source.whole("train.global_batch_size", 16, 1, 1'000'000'000);
  if (steps > 0)
    source.put("job.optimizer_steps", steps, "train.max_steps");
  else if (tokens > 0 && stream)
    source.put("job.optimizer_steps", std::max<std::int64_t>(tokens / (batch * row), 1),
               "train.max_tokens");
  else
    source.put("job.epochs", epochs, "train.epochs");
  assume_data(source.question(),
              {.packed = stream,
               .epochs = static_cast<double>(epochs),
               .steps_said = steps > 0 || (tokens > 0 && stream),
               .fill_said = stream,
               .padding = Padding::longest},
              source.result());
}

// Fabric keeps all in one type ("bf16-true"), or in 32 bits and casts for products ("bf16-mixed",
// the usual one), where shards are gathered in 32 bits as well.
void put_litgpt_types(MappedSource& source, const std::string& said, bool adapters, bool sharded) {
  constexpr std::string_view key = "precision";
  if (said.starts_with("32")) return source.put("strategy.precision", "fp32", key);
  if (said.starts_with("16")) source.put("strategy.precision", "fp16", key);
  const bool mixed = said.ends_with("mixed");
  put_loaded(source, mixed ? Loaded::in_32_bits : Loaded::in_16_bits, key);
  if (sharded) {
    source.put("strategy.fsdp.reduce_dtype", "bf16", key);
    if (mixed) source.put("strategy.fsdp.gather_dtype", "fp32", key);
  }
  if (!mixed) source.put("strategy.gradient_dtype", "bf16", key);
  if (!adapters) return;
  source.put("strategy.lora.adapters", mixed ? "autocast" : "bf16", key);
  if (mixed && !sharded) source.put("strategy.lora.frozen", "fp32", key);
}

// "bnb.nf4-dq": only with -dq are scales quantised as well.
std::string format_of(MappedSource& source) {
  std::string said = source.text("quantize");
  if (said.empty()) return "";
  if (said.starts_with("bnb.")) said.erase(0, 4);
  if (said.starts_with("int8")) return bitsandbytes_format(8);
  return bitsandbytes_format(4, said.substr(0, 3), said.ends_with("-dq"));
}

void put_litgpt_adapter(MappedSource& source) {
  std::vector<std::string> modules;
  const Table parts = source.facts().table("adapted");
  for (const std::string& key : parts.keys())
    if (source.on(key, key == "lora_query" || key == "lora_value"))
      for (const std::string& each : parts.texts(key)) modules.push_back(each);
  put_adapter(source, {.rank_key = "lora_r",
                       .modules_key = "lora_query",
                       .usual_rank = 8,
                       .modules = modules,
                       .format = format_of(source),
                       .format_key = "quantize",
                       .dropout_key = "lora_dropout",
                       .usual_dropout = 0.05});
}

// The word of trainers of transformers for "torch.optim.AdamW", a name alone or a block.
std::string optimizer_of(MappedSource& source, Recipe recipe) {
  const std::string said = source.text("optimizer.class_path", source.text("optimizer", "AdamW"));
  std::string name = said.substr(said.rfind('.') + 1);
  const Table known = source.facts().table("optimizers");
  if (!known.has(name)) return name;
  if (name == "AdamW" && source.says("quantize")) return "paged_adamw_32bit";
  // litgpt/pretrain.py asks for the fused kernel.
  return name == "AdamW" && recipe == Recipe::pretrain ? "adamw_torch_fused" : known.text(name);
}

}  // namespace

Translation translate_litgpt(const SourceQuestion& question, const Document& document) {
  MappedSource source(question, document, "LitGPT", "programs/litgpt/litgpt");
  const Recipe recipe = recipe_of(question, source.root());
  source.put_model(model_key(source));
  assume_machine(question, source.root(), source.result(), gpus_of_litgpt(source, recipe));
  source.look_around();
  source.put_stack();
  put_litgpt_rows(source, recipe);
  put_litgpt_batch(source);
  const bool several = !source.around().cluster || source.around().cluster->ranks() > 1;
  constexpr std::string_view devices = "devices";
  ShardingFacts sharding;
  if (several)
    sharding = put_fsdp(source, {.key = devices,
                                 .strategy = recipe == Recipe::pretrain ? "HYBRID_SHARD" : "",
                                 .version = "1"});
  else
    source.put("strategy.zero", "0", devices);
  // Blocks are computed again where Fabric shards a model that is fine-tuned.
  source.put("strategy.checkpointing", several && recipe != Recipe::pretrain ? "full" : "none",
             devices);
  if (recipe == Recipe::lora) put_litgpt_adapter(source);
  put_litgpt_types(source, source.text("precision", "bf16-mixed"), recipe == Recipe::lora, several);
  put_optimizer(source, source.says("optimizer.class_path") ? "optimizer.class_path" : "optimizer",
                optimizer_of(source, recipe), sharding);
  if (recipe != Recipe::lora) source.put("strategy.cross_entropy", "chunks", "");
  if (recipe == Recipe::pretrain) source.put("strategy.compile", true, "", "torch.compile");
  source.put_mapped();
  return source.finish();
}

}  // namespace stepsim
