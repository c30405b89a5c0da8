#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "scenarios/foreign/programs/programs.hpp"
#include "scenarios/foreign/table/trainer_adapters.hpp"
#include "scenarios/foreign/table/trainer_words.hpp"
#include "sim/base/letters.hpp"

namespace stepsim {
namespace {

// Ranks of each kind of parallelism; of those with the same rows 0 stands for all that are left.
struct AutomodelDegrees {
  std::int64_t rows = 0, replicas = 1, tensor = 1, context = 1, stages = 1, experts = 1;

  std::int64_t least() const {
    return std::max(tensor * context * stages * std::max<std::int64_t>(rows, 1), experts * stages);
  }
};

AutomodelDegrees automodel_degrees(MappedSource& source) {
  const auto degree = [&](std::string_view name, std::int64_t fallback) {
    const std::string key = fmt::format("distributed.{}_size", name);
    const std::string said = in_small_letters(source.text(key));
    return said == "none" ? fallback : source.whole(key, fallback, 1, most_ranks);
  };
  return {.rows = degree("dp", 0),
          .replicas = degree("dp_replicate", 1),
          .tensor = degree("tp", 1),
          .context = degree("cp", 1),
          .stages = degree("pp", 1),
          .experts = degree("ep", 1)};
}

// Trays of Grace machines hold four GPUs.
std::int64_t gpus_of_node(const SourceQuestion& question) {
  return question.file.find("gb200") != std::string::npos ||
                 question.file.find("gb300") != std::string::npos
             ? 4
             : 8;
}

// Nodes of eight where the file says how many it is for; else what its degrees need.
GpusOfSource automodel_machine(MappedSource& source, const AutomodelDegrees& degrees) {
  constexpr std::int64_t most_nodes = 1 << 13;
  const std::int64_t usual = gpus_of_node(source.question());
  const std::int64_t benchmark = source.whole("benchmark.num_nodes", 0, 1, most_nodes),
                     own = source.whole("ci.nodes", 0, 1, most_nodes),
                     each = source.whole("ci.nproc_per_node", usual, 1, 1 << 10);
  if (benchmark > 0)
    return {.gpus = usual * benchmark, .nodes = benchmark, .why = "benchmark.num_nodes says so"};
  if (own > 0) return {.gpus = each * own, .nodes = own, .why = "ci.nodes says so"};
  if (degrees.rows > 0 || degrees.least() > 8)
    return {.gpus = degrees.least(), .why = "the sizes of `distributed` make so many"};
  return {};
}

std::string word_behind_dots(const std::string& said) {
  return said.substr(said.rfind('.') + 1);
}

void refuse_automodel_recipes(MappedSource& source) {
  const std::string recipe = word_behind_dots(source.text("recipe", "Train"));
  const bool known = recipe.starts_with("Train") || recipe.starts_with("Benchmark") ||
                     recipe.starts_with("Finetune");
  if (!source.keys_below("teacher_model").empty())
    source.problem("teacher_model", "distillation is not modelled: a second model beside it");
  else if (!known || recipe.find("Diffusion") != std::string::npos)
    source.problem("recipe", fmt::format("{} is not modelled: only the training of language models "
                                         "(Train..., Benchmarking..., Finetune...)",
                                         recipe));
}

// Puts pieces of rows on stages; else rows, several times where the global batch wants it.
void put_automodel_batch(MappedSource& source, const AutomodelDegrees& degrees) {
  const std::int64_t rows = source.whole("step_scheduler.local_batch_size", 1, 1, most_rows),
                     piece = source.whole("pp_microbatch_size", 1, 1, most_rows);
  const bool cut = degrees.stages > 1;
  source.put("job.micro_batch", cut ? piece : rows,
             cut ? "pp_microbatch_size" : "step_scheduler.local_batch_size");
  const std::int64_t packed =
      source.whole("packed_sequence.packed_sequence_size", 0, 0, most_tokens);
  std::string_view key = "packed_sequence.packed_sequence_size";
  std::int64_t length = packed;
  for (const std::string_view other :
       {"dataset.seq_length", "dataset.seq_len", "dataset.max_length"})
    if (length == 0 && source.says(other)) {
      length = source.whole(other, 0, 1, most_tokens);
      key = other;
    }
  if (length == 0 && !source.question().decides("job.sequence"))
    source.result().assumptions.push_back({std::string(length_of_rows), "1024 tokens",
                                           "rows are cut nowhere; TRL cuts there",
                                           "--set job.sequence=..."});
  source.put("job.sequence", length > 0 ? length : 1024, key, length > 0 ? "" : "a usual one");
  // Made-up rows are all full.
  const std::string data = source.text("dataset._target_");
  const bool full = data.find("Mock") != std::string::npos ||
                    data.find("MegatronPretraining") != std::string::npos ||
                    data.find("nanogpt") != std::string::npos;
  source.put("job.packing", packed > 0 || full, key);
  if (full) source.put("job.fill", "1", "dataset._target_", "rows of made-up or cut text");
  const std::int64_t steps = source.whole("step_scheduler.max_steps", 0, 1, 1'000'000'000);
  const double epochs = source.number("step_scheduler.num_epochs", 1, 0, 1e6);
  if (steps > 0)
    source.put("job.optimizer_steps", steps, "step_scheduler.max_steps");
  else
    source.put("job.epochs", fmt::format("{}", epochs), "step_scheduler.num_epochs");
  assume_data(source.question(),
              {.packed = packed > 0,
               .epochs = epochs,
               .steps_said = steps > 0,
               .fill_said = full,
               .padding = full ? Padding::row : Padding::longest},
              source.result());
}

// Parameters are trained in the type that they are loaded in, gradients are reduced in 32 bits.
void put_automodel_types(MappedSource& source) {
  const std::string type = word_behind_dots(source.text("model.torch_dtype", "bfloat16"));
  const bool whole = type == "float32" || type == "fp32";
  const bool kept = whole || source.on("optimizer.master_weights");
  source.put("strategy.master_weights", kept,
             whole ? "model.torch_dtype" : "optimizer.master_weights",
             kept ? "" : "parameters are trained as they are loaded");
  const std::string reduced =
      word_behind_dots(source.text("distributed.mp_policy.reduce_dtype", "float32"));
  if (reduced == "bfloat16" || reduced == "bf16")
    source.put("strategy.fsdp.reduce_dtype", "bf16", "distributed.mp_policy.reduce_dtype");
}

bool runs_own_experts(MappedSource& source) {
  return source.around().model && source.around().model->experts && !source.on("model.force_hf");
}

ShardingFacts put_automodel_sharding(MappedSource& source, const AutomodelDegrees& degrees) {
  constexpr std::string_view key = "distributed.strategy";
  const std::string target = word_behind_dots(source.text("distributed._target_"));
  const std::string said = in_small_letters(
      source.text(key, target.find("DDP") != std::string::npos        ? "ddp"
                       : target.find("Megatron") != std::string::npos ? "megatron_fsdp"
                                                                      : "fsdp2"));
  if (said == "ddp") return put_replicas(source, key);
  if (said == "megatron_fsdp") source.without(key, "megatron_fsdp is counted as fsdp2");
  const bool experts = runs_own_experts(source);
  const std::string reshard = source.text(
      experts ? "moe_reshard" : "distributed.reshard_after_forward", experts ? "false" : "");
  constexpr std::string_view offload = "distributed.offload_policy._target_";
  const ShardingFacts facts =
      put_fsdp(source, {.key = key,
                        .version = "2",
                        .reshard = in_small_letters(reshard),
                        .replicas = degrees.replicas,
                        .replicas_key = "distributed.dp_replicate_size",
                        .offload = source.text(offload).ends_with("CPUOffloadPolicy"),
                        .offload_key = offload});
  put_automodel_types(source);
  return facts;
}

void put_said(MappedSource& source, std::string_view path, std::string_view key,
              std::string_view table) {
  if (const std::string said = source.text(key); !said.empty())
    source.put_word(path, table, said, key, "what the stack does is taken");
}

// Puts how the family's own classes run it; those of transformers say attn_implementation.
void put_backend(MappedSource& source, const AutomodelDegrees& degrees) {
  put_said(source, "strategy.attention",
           source.says("model.backend.attn") ? "model.backend.attn" : "model.attn_implementation",
           "attention");
  if (source.around().model && source.around().model->experts) {
    constexpr std::string_view key = "model.backend.experts";
    const std::string said = source.text(key, source.on("model.force_hf") ? "torch" : "gmm");
    const Table words = source.facts().table("experts");
    std::string kernel = words.has(said) ? words.text(said) : "grouped";
    if (!words.has(said) || (kernel == "loop" && degrees.experts > 1)) {
      source.without(key, fmt::format("{}: counted as grouped", said));
      kernel = "grouped";
    }
    source.put("strategy.moe.kernel", kernel, key, said);
    if (degrees.experts > 1 && source.on("model.backend.fake_balanced_gate"))
      source.put("strategy.moe.neighbours", true, "model.backend.fake_balanced_gate",
                 "tokens are dealt out to experts in turn");
    if (degrees.experts > 1)
      put_said(source, "strategy.moe.dispatcher", "model.backend.dispatcher", "dispatchers");
  }
  if (source.on("compile.enabled") || source.on("distributed.enable_compile"))
    source.put("strategy.compile", true,
               source.says("compile.enabled") ? "compile.enabled" : "distributed.enable_compile");
}

void put_automodel_pipeline(MappedSource& source, const AutomodelDegrees& degrees) {
  const std::string said = in_small_letters(source.text("pp_schedule", "1f1b"));
  const std::int64_t each = source.whole("layers_per_stage", 0, 1, most_ranks);
  if (degrees.stages < 2) return;
  const Table known = source.facts().table("schedules");
  if (!known.has(said))
    return source.problem("pp_schedule",
                          fmt::format("expected {}, found \"{}\"", one_of(known.keys()), said));
  source.put("strategy.pipeline_parallel.schedule", known.text(said), "pp_schedule");
  if (!source.around().model) return;
  const std::int64_t layers = source.around().model->layers;
  const bool single = known.text(said) == "1f1b" || known.text(said) == "gpipe";
  const std::int64_t wanted =
      each > 0 ? (layers + each * degrees.stages - 1) / (each * degrees.stages) : 2;
  const std::int64_t pieces = single ? 1 : std::max<std::int64_t>(wanted, 2);
  if (!single)
    source.put("strategy.pipeline_parallel.virtual_stages", pieces,
               each > 0 ? "layers_per_stage" : "pp_schedule");
  const std::int64_t shares = pieces * degrees.stages;
  if (layers % shares == 0 || layers < shares) return;
  std::vector<std::int64_t> list;
  for (std::int64_t share = 0; share < shares; ++share)
    list.push_back(layers / shares + (share < layers % shares ? 1 : 0));
  source.put("strategy.pipeline_parallel.layers", fmt::format("[{}]", fmt::join(list, ", ")),
             each > 0 ? "layers_per_stage" : "pp_schedule", "the first ones have one more");
}

void put_automodel_adapter(MappedSource& source) {
  if (source.keys_below("peft").empty()) return;
  std::vector<std::string> modules;
  for (const std::string& word : words_at(source, "peft.target_modules")) {
    const std::string last = word_behind_dots(word);
    modules.push_back(last == "*" || last == "*_proj" ? "all-linear" : last);
  }
  if (source.on("peft.match_all_linear")) modules = {"all-linear"};
  constexpr std::string_view four_key = "quantization.load_in_4bit",
                             eight_key = "quantization.load_in_8bit";
  const bool four = source.on(four_key), eight = source.on(eight_key);
  put_adapter(source, {.rank_key = "peft.dim",
                       .modules_key = "peft.target_modules",
                       .modules = modules,
                       .format = bitsandbytes_format(four    ? 4
                                                     : eight ? 8
                                                             : 0),
                       .format_key = four ? four_key : eight_key,
                       .dora_key = "peft.use_dora"});
}

void put_automodel_loss(MappedSource& source) {
  constexpr std::string_view key = "loss_fn._target_", cast = "loss_fn.fp32_upcast";
  const std::string said = word_behind_dots(source.text(key, "MaskedCrossEntropy"));
  const bool wide = source.on(cast, true);
  if (!wide && source.facts().table("losses").text_or(said, "") == "logits")
    return source.put("strategy.cross_entropy", "logits_16", cast);
  source.put_word("strategy.cross_entropy", "losses", said, key, "the loss of the stack is taken");
}

void put_automodel_optimizer(MappedSource& source, const ShardingFacts& sharding) {
  constexpr std::string_view key = "optimizer._target_";
  const std::string said = word_behind_dots(source.text(key, "AdamW"));
  const Table known = source.facts().table("optimizers");
  if (!known.has(said)) source.without(key, fmt::format("{}: AdamW is taken", said));
  put_optimizer(source, key, known.has(said) ? known.text(said) : "adamw_torch", sharding);
}

}  // namespace

Translation translate_automodel(const SourceQuestion& question, const Document& document) {
  MappedSource source(question, document, "NeMo AutoModel", "programs/automodel/automodel");
  refuse_automodel_recipes(source);
  const AutomodelDegrees degrees = automodel_degrees(source);
  source.put_model("model.pretrained_model_name_or_path");
  assume_machine(question, source.root(), source.result(), automodel_machine(source, degrees));
  source.look_around();
  source.put_stack();
  source.put("job.method", "sft", "");
  put_automodel_batch(source, degrees);
  const ShardingFacts sharding = put_automodel_sharding(source, degrees);
  put_automodel_optimizer(source, sharding);
  put_automodel_adapter(source);
  put_backend(source, degrees);
  put_automodel_pipeline(source, degrees);
  if (degrees.tensor > 1)
    source.put("strategy.tensor_parallel.sequence", source.on("distributed.sequence_parallel"),
               "distributed.sequence_parallel");
  put_automodel_loss(source);
  source.put_mapped();
  return source.finish();
}

}  // namespace stepsim
