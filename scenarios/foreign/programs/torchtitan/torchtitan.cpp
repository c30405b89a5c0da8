#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "scenarios/foreign/programs/programs.hpp"
#include "scenarios/foreign/table/trainer_words.hpp"

namespace stepsim {
namespace {

// Ranks of each kind of parallelism; of shards 0 stands for all that are left.
struct TorchTitanDegrees {
  std::int64_t replicas = 1, shards = 0, tensor = 1, context = 1, stages = 1;

  std::int64_t ranks() const { return replicas * shards * tensor * context * stages; }
};

TorchTitanDegrees read_degrees(MappedSource& source) {
  const auto degree = [&](std::string_view kind, std::int64_t fallback) {
    return source.whole(fmt::format("parallelism.{}_degree", kind), fallback, fallback < 0 ? -1 : 1,
                        most_ranks);
  };
  TorchTitanDegrees degrees{.replicas = degree("data_parallel_replicate", 1),
                            .shards = std::max<std::int64_t>(degree("data_parallel_shard", -1), 0),
                            .tensor = degree("tensor_parallel", 1),
                            .context = degree("context_parallel", 1),
                            .stages = degree("pipeline_parallel", 1)};
  return degrees;
}

std::vector<std::string> flavours_of(const Table& models, const std::string& name) {
  return models.has(name) ? models.table(name).keys() : std::vector<std::string>{};
}

void read_model(MappedSource& source) {
  const std::string name = source.text("model.name", "llama3"),
                    flavour = source.text("model.flavor", "debugmodel");
  source.text("model.tokenizer_path");
  const std::string assets = source.text("model.hf_assets_path");
  if (source.question().decides("model")) return;
  const Table models = source.facts().table("flavours");
  const std::vector<std::string> known = flavours_of(models, name);
  const std::string bare = flavour.substr(0, flavour.find('_'));
  if (std::find(known.begin(), known.end(), bare) != known.end())
    return source.put("model", yaml_quoted(models.table(name).text(bare)), "model.flavor",
                      fmt::format("{} {}", name, flavour));
  const std::string key = source.says("model.flavor") ? "model.flavor" : "model.name";
  constexpr std::string_view way =
      "name one with --model: `stepsim list models` names them, and the path of a config.json will "
      "do";
  if (known.empty())
    source.problem(key, fmt::format("models of \"{}\" are not known{}: {}", name,
                                    did_you_mean(name, models.keys()), way));
  else
    source.problem(key, fmt::format("{} {} is not known{}: {}", name, flavour,
                                    did_you_mean(flavour, known), way));
}

// Reads the batch. If there are pipeline stages, the rows of a GPU are cut into micro-batches.
void read_torchtitan_batch(MappedSource& source, const TorchTitanDegrees& degrees) {
  const std::string_view key =
      source.says("training.batch_size") ? "training.batch_size" : "training.local_batch_size";
  const std::int64_t local = source.whole(key, 8, 1, most_rows);
  const std::int64_t piece =
      source.whole("parallelism.pipeline_parallel_microbatch_size", 1, 1, most_rows);
  const std::int64_t batch = source.whole("training.global_batch_size", -1, -1, 1 << 30);
  const bool cut = degrees.stages > 1;
  if (cut && local % piece != 0)
    source.problem("parallelism.pipeline_parallel_microbatch_size",
                   fmt::format("{} does not divide {} = {}", piece, key, local));
  source.put("job.micro_batch", cut ? piece : local,
             cut ? "parallelism.pipeline_parallel_microbatch_size" : key);
  if (batch > 0)
    source.put("job.global_batch", batch, "training.global_batch_size");
  else
    source.put("job.gradient_accumulation", cut ? local / piece : 1,
               cut ? key : "training.global_batch_size");
  source.put("job.packing", true, "", "rows are cut out of a stream of documents");
  source.put("job.fill", "1", "", "rows are cut out of a stream of documents");
}

void read_sharding(MappedSource& source, const TorchTitanDegrees& degrees) {
  constexpr std::string_view shard_key = "parallelism.data_parallel_shard_degree",
                             replicate_key = "parallelism.data_parallel_replicate_degree";
  const auto& cluster = source.around().cluster;
  const auto there = cluster ? static_cast<std::int64_t>(cluster->ranks()) : 0;
  if (degrees.shards > 0 && cluster && degrees.ranks() != there)
    source.problem(shard_key, fmt::format("the degrees make {} ranks, and the machine has {}: "
                                          "--set {}=-1 takes all that are left",
                                          degrees.ranks(), there, shard_key));
  const bool sharded = degrees.shards != 1;
  source.put("strategy.zero",
             !sharded               ? "0"
             : degrees.replicas > 1 ? "hsdp"
                                    : "fsdp",
             degrees.replicas > 1 ? replicate_key : shard_key,
             sharded ? "" : "each GPU has everything");
  if (sharded && degrees.replicas > 1)
    source.put("strategy.fsdp.replicate", degrees.replicas, replicate_key);
  const std::string reshard = source.text("parallelism.fsdp_reshard_after_forward", "default");
  if (reshard != "default" && sharded)
    source.put("strategy.fsdp.reshard_after_forward", reshard == "always",
               "parallelism.fsdp_reshard_after_forward");
  constexpr std::string_view offload = "training.enable_cpu_offload";
  if (!sharded || !source.on(offload)) return;
  put_fsdp_offload(source, offload);
  if (source.text("optimizer.implementation", "fused") != "fused")
    put_unfused_on_host(source, "optimizer.implementation");
}

void read_types(MappedSource& source, const TorchTitanDegrees& degrees) {
  if (source.text("training.mixed_precision_param", "bfloat16") == "float32")
    source.put("strategy.precision", "fp32", "training.mixed_precision_param");
  const std::string type = source.text("training.dtype", "float32");
  if (type == "bfloat16") {
    source.put("strategy.master_weights", false, "training.dtype");
    source.put("strategy.gradient_dtype", "bf16", "training.dtype");
  } else if (degrees.shards == 1) {
    source.put("strategy.master_weights", true, "training.dtype");
  }
}

void read_checkpointing(MappedSource& source) {
  constexpr std::string_view key = "activation_checkpoint.mode",
                             option_key = "activation_checkpoint.selective_ac_option";
  const std::string mode = source.choice(key, "selective"), option = source.text(option_key, "2");
  if (mode == "memory_budget") {
    source.without(key, "a share of activations that the compiler chooses: none is computed again");
    return source.put("strategy.checkpointing", "none", key);
  }
  if (mode != "selective") return source.put("strategy.checkpointing", mode, key);
  if (option == "op") return source.put("strategy.checkpointing", "operators", option_key);
  source.put("strategy.checkpointing", "full", key, fmt::format("of every {}th layer", option));
  source.put("strategy.checkpoint_every", source.whole(option_key, 2, 1, most_ranks), option_key);
}

void read_compiler(MappedSource& source) {
  const std::string_view key =
      source.says("training.compile") ? "training.compile" : "compile.enable";
  const std::vector<std::string> parts = source.texts("compile.components");
  const bool model = parts.empty() || std::find(parts.begin(), parts.end(), "model") != parts.end();
  source.put("strategy.compile", source.on(key) && model, key);
}

// Returns how many layers each piece of the model has: embedding and head count as some.
std::vector<std::int64_t> shares_of(std::int64_t layers, std::int64_t pieces, std::int64_t first,
                                    std::int64_t last) {
  const std::int64_t all = layers + first + last;
  std::vector<std::int64_t> shares;
  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    std::int64_t share = all / pieces + (piece < all % pieces ? 1 : 0);
    if (piece == 0) share -= first;
    if (piece == pieces - 1) share -= last;
    shares.push_back(share);
  }
  return shares;
}

std::string schedule_of(MappedSource& source) {
  constexpr std::string_view key = "parallelism.pipeline_parallel_schedule";
  const std::string said = source.text(key, "1F1B");
  const Table own = source.facts().table("schedules"),
              near = source.facts().table("near_schedules");
  if (own.has(said)) return own.text(said);
  if (near.has(said)) {
    source.without(key, fmt::format("{} is counted as Interleaved1F1B", said));
    return near.text(said);
  }
  std::vector<std::string> known = own.keys();
  for (std::string& each : near.keys()) known.push_back(std::move(each));
  source.problem(key, expected_one_of(known, said));
  return own.text("1F1B");
}

void read_torchtitan_stages(MappedSource& source, const TorchTitanDegrees& degrees) {
  constexpr std::string_view per_stage_key = "parallelism.pipeline_parallel_layers_per_stage",
                             schedule_key = "parallelism.pipeline_parallel_schedule";
  const std::int64_t first = source.whole("parallelism.pipeline_parallel_first_stage_less_layers",
                                          1, 0, most_ranks),
                     last = source.whole("parallelism.pipeline_parallel_last_stage_less_layers", 1,
                                         0, most_ranks),
                     per_stage = source.whole(per_stage_key, 0, 1, most_ranks);
  const std::string schedule = schedule_of(source);
  const bool named = source.says("parallelism.module_fqns_per_model_part");
  if (degrees.stages < 2) return;
  source.put("strategy.pipeline_parallel.schedule", schedule, schedule_key);
  if (named)
    source.without("parallelism.module_fqns_per_model_part", "layers are shared out evenly");
  if (!source.around().model) return;
  const std::int64_t layers = source.around().model->layers;
  const std::int64_t all = layers + first + last;
  const bool several = schedule != "1f1b" && schedule != "gpipe";
  std::int64_t pieces = several ? 2 * degrees.stages : degrees.stages;
  if (per_stage > 0) pieces = (all + per_stage - 1) / per_stage;
  if (pieces % degrees.stages != 0 || (!several && pieces != degrees.stages))
    return source.problem(per_stage_key,
                          fmt::format("{} layers make {} pieces, which {} stages cannot share",
                                      per_stage, pieces, degrees.stages));
  if (several)
    source.put("strategy.pipeline_parallel.virtual_stages", pieces / degrees.stages,
               per_stage > 0 ? per_stage_key : schedule_key);
  const std::vector<std::int64_t> shares = shares_of(layers, pieces, first, last);
  const auto [least, largest] = std::minmax_element(shares.begin(), shares.end());
  if (*least > 0 && *least < *largest)
    source.put("strategy.pipeline_parallel.layers", fmt::format("[{}]", fmt::join(shares, ", ")),
               per_stage_key, "embedding and head count as layers");
}

void read_parallel(MappedSource& source, const TorchTitanDegrees& degrees) {
  const std::string rotate = source.text("parallelism.context_parallel_rotate_method", "allgather");
  if (degrees.context > 1 && rotate == "allgather")
    source.without("parallelism.context_parallel_degree",
                   "keys and values are gathered at once; counted as a ring");
  const std::int64_t experts = source.whole("parallelism.expert_parallel_degree", 1, 1, most_ranks);
  const std::int64_t inner =
      source.whole("parallelism.expert_tensor_parallel_degree", 1, 1, most_ranks);
  if (experts > 1 && degrees.tensor > 1)
    source.put("strategy.moe.expert_tensor_parallel", inner,
               "parallelism.expert_tensor_parallel_degree");
  read_torchtitan_stages(source, degrees);
}

void read_torchtitan_saves(MappedSource& source) {
  const bool saves = source.on("checkpoint.enable") || source.on("checkpoint.enable_checkpoint");
  const std::int64_t every = source.whole("checkpoint.interval", 500, 1, 1'000'000'000);
  const auto& cluster = source.around().cluster;
  if (!saves || (cluster && cluster->node.count(PartKind::nvme) == 0)) return;
  if (source.whole("parallelism.pipeline_parallel_degree", 1, 1, most_ranks) > 1)
    return source.without("checkpoint.interval", "saves of a model in stages");
  source.put("job.save.every", every, "checkpoint.interval");
  source.put("job.save.weights", false, "checkpoint.enable", "each GPU saves its own part");
}

// Converters swap layers for ones that multiply fewer bits; what they are told stands in blocks of
// their names.
void read_converter(MappedSource& source, const std::string& converter, bool sharded) {
  constexpr std::string_view key = "model.converters";
  const Table blocks = source.facts().table("converters");
  if (!blocks.has(converter))
    return source.without(key, fmt::format("{}: layers stay as they are", converter));
  const std::string block = blocks.text(converter);
  const std::string recipe_key = fmt::format("{}.recipe_name", block),
                    gather_key = fmt::format("{}.enable_fsdp_float8_all_gather", block);
  const bool own = source.says(recipe_key);
  const std::string recipe =
      source.text(recipe_key, block.ends_with("mx") ? "mxfp8_cublas" : "tensorwise");
  source.put_precision(own ? recipe_key : key, recipe);
  if (source.on(gather_key) && sharded && recipe == "tensorwise")
    source.put("strategy.fsdp.narrow_gather", true, gather_key);
}

// A block of settings does nothing unless a converter is asked for.
void read_converters(MappedSource& source, const TorchTitanDegrees& degrees) {
  const std::vector<std::string> converters = source.texts("model.converters");
  for (const std::string& converter : converters)
    read_converter(source, converter, degrees.shards != 1);
  if (!converters.empty()) return;
  for (const std::string_view block : {"quantize", "float8", "mx"})
    if (!source.keys_below(block).empty())
      source.note(
          fmt::format("{}: model.converters names no converter, so nothing is quantised", block));
}

}  // namespace

Translation translate_torchtitan(const SourceQuestion& question, const Document& document) {
  MappedSource source(question, document, "TorchTitan", "programs/torchtitan/torchtitan");
  const TorchTitanDegrees degrees = read_degrees(source);
  read_model(source);
  const GpusOfSource launched = gpus_of(question);
  const bool as_launched =
      launched.each > 0 && (degrees.ranks() <= 0 || degrees.ranks() == launched.gpus);
  assume_machine(question, source.root(), source.result(),
                 as_launched ? launched
                             : GpusOfSource{.gpus = degrees.ranks(),
                                            .why = "the degrees of [parallelism] make so many"});
  source.look_around();
  source.put_stack();
  source.put("job.method", "sft", "");
  read_torchtitan_batch(source, degrees);
  read_torchtitan_saves(source);
  read_sharding(source, degrees);
  read_types(source, degrees);
  read_checkpointing(source);
  read_compiler(source);
  read_parallel(source, degrees);
  read_converters(source, degrees);
  source.put_mapped();
  return source.finish();
}

}  // namespace stepsim
