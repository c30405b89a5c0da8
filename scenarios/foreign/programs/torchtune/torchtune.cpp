#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "scenarios/foreign/programs/programs.hpp"
#include "scenarios/foreign/table/trainer_adapters.hpp"
#include "scenarios/foreign/table/trainer_words.hpp"
#include "sim/base/error.hpp"

namespace stepsim {
namespace {

// A builder is "llama3_1_8b" of "torchtune.models.llama3_1.qlora_llama3_1_8b".
struct Builder {
  std::string name;
  bool adapter = false, quantised = false;
};

std::string last_component(const std::string& said) {
  return said.substr(said.rfind('.') + 1);
}

Builder builder_of(MappedSource& source) {
  Builder builder{.name = last_component(source.text("model._component_"))};
  for (const std::string_view word : {"qlora_", "lora_"})
    if (builder.name.starts_with(word)) {
      builder.quantised = word.starts_with('q');
      builder.adapter = true;
      builder.name.erase(0, word.size());
    }
  for (const std::string_view word : {"_instruct", "_base"})
    if (builder.name.ends_with(word)) builder.name.resize(builder.name.size() - word.size());
  return builder;
}

void put_builder(MappedSource& source, const Builder& builder) {
  if (source.question().decides("model")) return;
  constexpr std::string_view key = "model._component_";
  const Table models = source.facts().table("models");
  if (models.has(builder.name))
    return source.put("model", yaml_quoted(models.text(builder.name)), key, builder.name);
  source.problem(key, fmt::format("the model \"{}\" is not known{}: name one with --model: "
                                  "`stepsim list models` names them, and the path of a config.json "
                                  "will do",
                                  builder.name, did_you_mean(builder.name, models.keys())));
}

// Recipes that this is none of, by what only their files hold.
void refuse_other_recipes(const SourceQuestion& question, const Table& root) {
  const std::vector<std::string> keys = root.keys();
  const auto holds_key = [&](std::string_view key) {
    return std::find(keys.begin(), keys.end(), key) != keys.end();
  };
  const auto refuse = [&](const std::string& key, std::string message) {
    const auto origin = key.empty() ? std::nullopt : root.origin(key);
    throw UserError({{question.file, origin ? origin->line : 0, key, std::move(message)}});
  };
  if (!holds_key("optimizer") || !holds_key("dataset"))
    refuse("", "is a torchtune file without optimizer and dataset, which trains nothing");
  if (holds_key("teacher_model"))
    refuse("teacher_model", "distillation is not modelled: a second model beside it");
  if (holds_key("grpo_samples")) refuse("grpo_samples", "torchtune's own GRPO is not modelled");
  if (holds_key("ppo_epochs")) refuse("ppo_epochs", "torchtune's own PPO is not modelled");
}

// Returns whether the recipe that runs the file is for one GPU, by the program's name, or by the
// file's and that of the folder that it writes.
bool is_for_one_gpu(const SourceQuestion& question, const Table& root) {
  const std::string name =
      question.launch != nullptr
          ? question.launch->program
          : std::filesystem::path(question.file).filename().string() +
                (root.has("output_dir") ? root.one_line("output_dir") : std::string());
  return name.find("single_device") != std::string::npos ||
         name.find("low_memory") != std::string::npos;
}

ShardingFacts put_torchtune_sharding(MappedSource& source, bool single) {
  const std::int64_t replicas = source.whole("data_parallel_replicate_dim", 1, 1, most_ranks);
  source.whole("data_parallel_shard_dim", -1, -1, most_ranks);
  const std::string type = source.text("dtype", "bf16");
  if (type == "fp32") source.put("strategy.precision", "fp32", "dtype");
  if (single) {
    source.put("strategy.zero", "0", "", "the recipe is for one GPU");
    if (type != "fp32")
      source.put("strategy.master_weights", false, "dtype", "parameters are trained in 16 bits");
    return {};
  }
  const ShardingFacts sharding =
      put_fsdp(source, {.key = "data_parallel_shard_dim",
                        .version = "2",
                        .reshard = source.text("fsdp_reshard_after_forward"),
                        .replicas = replicas,
                        .replicas_key = "data_parallel_replicate_dim",
                        .offload = source.on("fsdp_cpu_offload"),
                        .offload_key = "fsdp_cpu_offload"});
  if (type != "fp32") {
    source.put("strategy.master_weights", false, "dtype", "parameters are trained in 16 bits");
    source.put("strategy.gradient_dtype", "bf16", "dtype");
    source.put("strategy.fsdp.reduce_dtype", "bf16", "dtype");
  }
  return sharding;
}

void put_torchtune_optimizer(MappedSource& source, const ShardingFacts& sharding) {
  constexpr std::string_view key = "optimizer._component_";
  const std::string said = last_component(source.text(key, "AdamW"));
  const Table known = source.facts().table("optimizers");
  if (!known.has(said)) {
    source.without(key, fmt::format("{}: AdamW is taken", said));
    return source.put("strategy.optimizer", "adamw", key, said);
  }
  const std::string word = known.text(said);
  const bool fused = source.on("optimizer.fused");
  constexpr std::string_view lists = "optimizer.foreach";
  if (word == "adamw_torch" && !fused && source.says(lists) && !source.on(lists)) {
    source.put("strategy.optimizer", "adamw", key, said);
    return source.put("strategy.optimizer_kernels", "single", lists, "tensor by tensor");
  }
  put_optimizer(source, key, word == "adamw_torch" && fused ? "adamw_torch_fused" : word, sharding);
}

// Rows are cut where the tokenizer says so, else nowhere.
void put_rows(MappedSource& source) {
  // Builders of data sets of older releases, and people's own, cut by themselves.
  constexpr std::string_view of_data = "dataset.max_seq_len";
  const std::string_view key = source.says(of_data) && !source.says("tokenizer.max_seq_len")
                                   ? of_data
                                   : std::string_view("tokenizer.max_seq_len");
  const bool packed = source.on("dataset.packed");
  if (source.says(key)) {
    source.put("job.sequence", source.text(key), key);
  } else if (!source.question().decides("job.sequence")) {
    source.put("job.sequence", "1024", key, "a usual one");
    source.result().assumptions.push_back({std::string(length_of_rows), "1024 tokens",
                                           "tokenizer.max_seq_len does not say; TRL cuts there",
                                           "--set job.sequence=..."});
  }
  source.put("job.packing", packed, "dataset.packed");
  const std::int64_t steps = source.whole("max_steps_per_epoch", 0, 1, 1'000'000'000),
                     epochs = source.whole("epochs", 1, 1, 1'000'000);
  if (steps > 0)
    source.put("job.optimizer_steps", steps * epochs, "max_steps_per_epoch");
  else
    source.put("job.epochs", epochs, "epochs");
  assume_data(source.question(),
              {.packed = packed,
               .epochs = static_cast<double>(epochs),
               .steps_said = steps > 0,
               .padding = Padding::longest},
              source.result());
}

void put_loss(MappedSource& source) {
  constexpr std::string_view key = "loss._component_";
  const std::string said = last_component(source.text(key, "LinearCrossEntropyLoss"));
  if (said == "DPOLoss") return source.put("job.method", "dpo", key);
  source.put("job.method", "sft", "");
  source.put_word("strategy.cross_entropy", "losses", said, key,
                  "the loss over all logits is taken");
}

void put_builder_adapter(MappedSource& source, const Builder& builder) {
  if (!builder.adapter) return;
  std::vector<std::string> modules;
  for (const std::string& word : words_at(source, "model.lora_attn_modules"))
    modules.push_back(word == "output_proj" ? "o_proj" : word);
  if (source.on("model.apply_lora_to_mlp"))
    for (const char* name : {"gate_proj", "up_proj", "down_proj"}) modules.emplace_back(name);
  put_adapter(source, {.rank_key = "model.lora_rank",
                       .modules_key = "model.lora_attn_modules",
                       .modules = modules,
                       .format = bitsandbytes_format(builder.quantised ? 4 : 0),
                       .format_key = "model._component_",
                       .dora_key = "model.use_dora",
                       .dropout_key = "model.lora_dropout"});
}

}  // namespace

Translation translate_torchtune(const SourceQuestion& question, const Document& document) {
  refuse_other_recipes(question, document.root());
  MappedSource source(question, document, "torchtune", "programs/torchtune/torchtune");
  const Builder builder = builder_of(source);
  put_builder(source, builder);
  const bool single = is_for_one_gpu(question, source.root());
  assume_machine(question, source.root(), source.result(),
                 single ? GpusOfSource{.gpus = 1,
                                       .nodes = 1,
                                       .why = "the recipe is for one GPU, as its name says"}
                        : gpus_of(question));
  source.look_around();
  source.put_stack();
  put_loss(source);
  put_rows(source);
  const ShardingFacts sharding = put_torchtune_sharding(source, single);
  put_torchtune_optimizer(source, sharding);
  put_builder_adapter(source, builder);
  constexpr std::string_view early = "optimizer_in_bwd";
  if (source.on(early) && !single)
    source.without(early, "with shards the update comes after the backward pass");
  else if (source.on(early))
    source.put("strategy.update_in_backward", true, early);
  if (single && source.around().cluster && source.around().cluster->ranks() > 1)
    source.note(
        "the recipe runs on one GPU, and this machine has more, each with everything: --set "
        "cluster.gpus_per_node=1");
  source.put("strategy.compile", source.on("compile") || source.on("compile.model"), "compile");
  if (source.on("enable_fp8_training"))
    source.put_precision("fp8_recipe_name", source.text("fp8_recipe_name", "tensorwise"));
  source.put_mapped();
  return source.finish();
}

}  // namespace stepsim
