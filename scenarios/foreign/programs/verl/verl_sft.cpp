#include <fmt/format.h>

#include <algorithm>

#include "scenarios/foreign/programs/programs.hpp"
#include "scenarios/foreign/programs/verl/verl.hpp"
#include "scenarios/foreign/table/grpo_source.hpp"
#include "scenarios/foreign/table/trainer_adapters.hpp"
#include "scenarios/foreign/table/trainer_words.hpp"
#include "sim/base/letters.hpp"

namespace stepsim {
namespace {

// torchrun says on how many GPUs, whatever the settings say.
GpusOfSource sft_machine(MappedSource& source) {
  const std::int64_t nodes = source.whole("trainer.nnodes", 1, 1, 1 << 13),
                     gpus = source.whole("trainer.n_gpus_per_node", 0, 0, 1 << 10);
  GpusOfSource launched = gpus_of(source.question());
  if (launched.gpus > 0 || gpus == 0) return launched;
  return {.gpus = nodes * gpus,
          .nodes = nodes,
          .why = "trainer.nnodes and n_gpus_per_node say so",
          .each = gpus};
}

std::string engine_key(std::string_view key) {
  return fmt::format("engine.{}", key);
}

// A rank's rows of a step are cut into micro-batches of as many rows, or of as many tokens: what
// is left over makes a smaller one, so the most rows that leave nothing over are taken.
// `parts`: ranks that work on the same rows, `shared` of them on other tokens of these.
void put_micro_batch(MappedSource& source, bool by_tokens, std::int64_t parts,
                     std::int64_t shared) {
  const std::int64_t batch = source.whole("data.train_batch_size", 256, 1, most_tokens),
                     longest = source.whole("data.max_length", 1024, 1, most_tokens),
                     tokens = source.whole("data.max_token_len_per_gpu", 8192, 1, most_tokens);
  const std::string_view rows_key = source.says("data.micro_batch_size")
                                        ? "data.micro_batch_size"
                                        : "data.micro_batch_size_per_gpu";
  const std::int64_t said = source.whole(rows_key, 4, 1, most_rows);
  source.says("data.micro_batch_size_per_gpu");
  const bool dynamic = by_tokens && source.on("data.use_dynamic_bsz", true);
  const auto& cluster = source.around().cluster;
  const std::int64_t ranks = cluster ? static_cast<std::int64_t>(cluster->ranks()) : parts;
  const std::int64_t rows =
      parts >= ranks ? batch : std::max<std::int64_t>(1, batch * parts / ranks);
  std::int64_t taken =
      std::clamp<std::int64_t>(dynamic ? tokens * shared / longest : said, 1, rows);
  while (rows % taken != 0) --taken;
  source.put("job.micro_batch", taken, dynamic ? "data.max_token_len_per_gpu" : rows_key,
             dynamic ? fmt::format("full rows in {} tokens", tokens * shared) : "");
}

void put_fsdp_of(MappedSource& source, bool engines) {
  const std::string key = engines ? engine_key("strategy") : "model.strategy";
  const std::string said = source.text(key, engines ? "fsdp" : "fsdp2");
  const std::string host = engines ? engine_key("offload_policy") : "model.fsdp_config.cpu_offload";
  const ShardingFacts sharding =
      put_fsdp(source, {.key = key,
                        .version = said == "fsdp2" ? "2" : "1",
                        .reshard = source.text(engine_key("reshard_after_forward")),
                        .offload = source.on(host),
                        .offload_key = host});
  put_model_dtype(source, engines ? engine_key("model_dtype") : "model.fsdp_config.model_dtype");
  const std::int64_t shard = source.whole(engine_key("fsdp_size"), -1, -1, 1 << 20);
  if (shard > 0)
    source.without(engine_key("fsdp_size"), "copies of all shards; one copy is shared by all");
  put_optimizer(source, "optim.optimizer",
                in_small_letters(source.text("optim.optimizer", "adamw")), sharding);
}

// Older releases have all that concerns the engine below `model`.
bool has_engines(const SourceQuestion& question) {
  return question.launch == nullptr ||
         question.launch->program.find("fsdp_sft_trainer") == std::string::npos;
}

void put_length_of_run(MappedSource& source) {
  const double epochs = source.number("trainer.total_epochs", 4, 0, 1e6);
  const std::int64_t steps = source.whole("trainer.total_training_steps", 0, 0, 1'000'000'000);
  if (steps > 0)
    source.put("job.optimizer_steps", steps, "trainer.total_training_steps");
  else
    source.put("job.epochs", fmt::format("{}", epochs), "trainer.total_epochs");
  const bool right = source.text("data.pad_mode", "no_padding") == "right";
  const bool free = has_engines(source.question()) && !right;
  assume_data(source.question(),
              {.packed = false,
               .epochs = epochs,
               .steps_said = steps > 0,
               .padding = free ? Padding::none : Padding::row,
               .padding_key = "data.pad_mode"},
              source.result());
}

}  // namespace

Translation translate_verl_sft(const SourceQuestion& question, const Document& document) {
  MappedSource source(question, document, "verl's supervised training", "programs/verl/verl-sft");
  const bool engines = has_engines(question) && !source.says("model.partial_pretrain");
  const bool megatron = engines && source.text("engine", "fsdp") == "megatron";
  const GpusOfSource gpus = sft_machine(source);
  source.put_model(engines ? "model.path" : "model.partial_pretrain");
  assume_machine(question, source.root(), source.result(), gpus);
  source.look_around();
  source.put_stack(megatron ? "stacks_of_megatron" : "stacks");
  source.put("job.method", "sft", "");
  source.put("job.packing", false, "", "rows without padding");
  const LearnersOfSource degrees = megatron_learners(source, engine_key(""));
  const std::int64_t shared = source.whole(
      engines ? engine_key("ulysses_sequence_parallel_size") : "ulysses_sequence_parallel_size", 1,
      1, most_ranks);
  if (megatron) {
    put_micro_batch(source, true, degrees.tensor * degrees.context * degrees.stages,
                    degrees.context);
    source.put("strategy.zero", "1", "engine");
    const std::string again = engine_key("override_transformer_config.recompute_granularity");
    source.put("strategy.checkpointing", source.text(again) == "full" ? "full" : "none", again);
    put_learners(source, degrees);
  } else {
    put_micro_batch(source, engines, shared, shared);
    put_fsdp_of(source, engines);
  }
  source.put("strategy.attention", "flash", "", "its models are loaded so");
  if (!megatron)
    source.put("strategy.cross_entropy", engines ? "in_place" : "logits", "",
               engines ? "one kernel finds the probabilities of the tokens"
                       : "PyTorch's, over logits in 32 bits");
  if (const std::int64_t rank = source.whole("model.lora_rank", 0, 0, most_lora_rank); rank > 0)
    put_adapter(source, {.rank_key = "model.lora_rank",
                         .modules_key = "model.target_modules",
                         .rank = rank,
                         .usual_modules = "all-linear"});
  put_length_of_run(source);
  source.put_mapped();
  return source.finish();
}

}  // namespace stepsim
