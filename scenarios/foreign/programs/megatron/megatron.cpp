#include "scenarios/foreign/programs/megatron/megatron.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "scenarios/foreign/programs/programs.hpp"
#include "scenarios/foreign/table/trainer_adapters.hpp"
#include "scenarios/foreign/table/trainer_words.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

void read_job(MappedSource& source) {
  for (const std::string_view key : {"seq-length", "micro-batch-size"})
    if (!source.says(key)) source.problem(key, "is missing");
  const double samples = source.number("train-samples", 0, 0, 1e15),
               batch = source.number("global-batch-size", 0, 0, 1e9);
  if (!source.says("global-batch-size"))
    source.put("job.gradient_accumulation", "1", "global-batch-size");
  if (samples > 0 && batch > 0)
    source.put("job.optimizer_steps", fmt::format("{:.0f}", samples / batch), "train-samples");
  source.put("job.packing", true, "", "rows are cut out of a stream of documents");
  source.put("job.fill", "1", "", "rows are cut out of a stream of documents");
}

void read_megatron_saves(MappedSource& source) {
  const std::int64_t every = source.whole("save-interval", 0, 1, 1'000'000'000);
  const auto& cluster = source.around().cluster;
  if (!source.says("save") || every == 0 || (cluster && cluster->node.count(PartKind::nvme) == 0))
    return;
  if (source.whole("pipeline-model-parallel-size", 1, 1, most_ranks) > 1)
    return source.without("save-interval", "saves of a model in stages");
  source.put("job.save.every", every, "save-interval");
  source.put("job.save.weights", false, "save", "each GPU saves its own part");
}

// Reads PyTorch's sharding, Megatron's of the same kind, a distributed optimizer, or copies.
void read_sharding(MappedSource& source, const MegatronDefaults& defaults) {
  const bool distributed = source.on("use-distributed-optimizer", defaults.distributed);
  const std::string part = source.text("data-parallel-sharding-strategy", "no_shard");
  for (const std::string_view key : {"use-torch-fsdp2", "use-megatron-fsdp", "use-custom-fsdp"}) {
    if (!source.on(key)) continue;
    if (key != "use-torch-fsdp2" && part != "optim_grads_params") continue;
    if (key != "use-torch-fsdp2") source.without(key, "counted as PyTorch's own sharding");
    return source.put("strategy.zero", "fsdp", key);
  }
  source.put("strategy.zero", distributed ? "1" : "0", "use-distributed-optimizer");
  if (distributed) return;
  const bool halves = source.on("bf16") || source.on("fp16");
  source.put("strategy.master_weights", halves, source.on("fp16") ? "fp16" : "bf16",
             "each rank keeps all copies in 32 bits");
}

void read_types(MappedSource& source, const MegatronDefaults& defaults) {
  if (source.on("fp16")) source.put("strategy.precision", "fp16", "fp16");
  const bool halves = source.on("bf16", defaults.halves) || source.on("fp16");
  if (!halves && source.says("num-layers"))
    source.put("strategy.precision", "fp32", "bf16", "neither bf16 nor fp16 is said");
  // Megatron-Bridge's key says the opposite of Megatron's own.
  constexpr std::string_view halved_key = "grad-reduce-in-bf16", whole_key = "grad-reduce-in-fp32";
  const bool told = source.says(whole_key);
  // Beside bf16 Megatron itself turns sums in 32 bits on, beside fp16 it does not
  // (megatron/training/arguments.py).
  const bool narrow = source.on("fp16") && !source.on("accumulate-allreduce-grads-in-fp32");
  const bool halved = source.on(halved_key, told ? !source.on(whole_key) : narrow);
  source.put("strategy.gradient_dtype", halved ? "bf16" : "fp32",
             told     ? whole_key
             : halved ? halved_key
                      : "accumulate-allreduce-grads-in-fp32");
  constexpr std::string_view offload = "optimizer-cpu-offload";
  if (!source.on(offload)) return;
  if (source.whole("pipeline-model-parallel-size", 1, 1, most_ranks) == 1)
    return source.put("strategy.offload.optimizer", "cpu", offload);
  source.without(offload,
                 "a pipeline with states on the host is not modelled: they stay on the GPUs");
  source.result().assumptions.push_back(
      {"states on the host", "none: all stays on the GPU",
       "not modelled beside a pipeline: the real step takes longer and needs less of the GPU",
       "--set pipeline-model-parallel-size=1"});
}

// Reads products of few bits: one option says their type and another how they are scaled, or one
// word says both (mixed_precision: bf16_with_fp8_current_scaling_mixed).
void read_precision(MappedSource& source) {
  struct Option {
    std::string_view type, recipe, usual;
  };
  for (const auto& [type, recipe, usual] :
       {Option{"fp8-format", "fp8-recipe", "delayed"}, Option{"fp8", "fp8-recipe", "delayed"},
        Option{"fp4-format", "fp4-recipe", "nvfp4"}, Option{"fp4", "fp4-recipe", "nvfp4"}}) {
    const std::string word = source.text(recipe, std::string(usual));
    if (!source.text(type).empty()) source.put_precision(source.says(recipe) ? recipe : type, word);
  }
  const std::string whole = source.text("mixed-precision");
  const Table words = source.facts().table("mixed_precisions");
  for (const std::string& part : words.keys())
    if (whole.find(part) != std::string::npos)
      source.put("strategy.precision", words.text(part), "mixed-precision", whole);
}

void read_recomputing(MappedSource& source, const MegatronDefaults& defaults) {
  const bool selective = source.on("recompute-activations");
  constexpr const char* older = "checkpoint-activations";  // until Megatron-LM v3.0
  const bool whole = source.on(older);
  const std::string said = source.text("recompute-granularity", selective ? "selective"
                                                                : whole   ? "full"
                                                                          : defaults.recompute);
  put_recomputing(source,
                  {.granularity = selective ? "recompute-activations"
                                  : whole   ? older
                                            : "recompute-granularity",
                   .method = "recompute-method",
                   .layers = "recompute-num-layers",
                   .modules = "recompute-modules",
                   .stages = source.whole("pipeline-model-parallel-size", 1, 1, most_ranks)},
                  said);
}

void read_tensor(MappedSource& source, const MegatronDegrees& degrees) {
  const bool sequence = source.on("sequence-parallel");
  if (degrees.tensor > 1)
    source.put("strategy.tensor_parallel.sequence", sequence, "sequence-parallel");
  const std::string way = source.text("cp-comm-type", "p2p");
  if (degrees.context < 2) return;
  if (way != "p2p" && way != "a2a")
    source.without("cp-comm-type", fmt::format("{} is counted as p2p", way));
  source.put(
      way == "a2a" ? "strategy.sequence_parallel.ulysses" : "strategy.sequence_parallel.ring",
      degrees.context, "context-parallel-size");
}

void read_experts(MappedSource& source, const MegatronDefaults& defaults) {
  const bool grouped = source.on("moe-grouped-gemm", defaults.grouped),
             direct = source.on("moe-enable-deepep");
  const std::string dispatcher = source.text("moe-token-dispatcher-type", defaults.dispatcher),
                    backend = source.text("moe-flex-dispatcher-backend");
  const std::int64_t parallel = source.whole("expert-model-parallel-size", 1, 1, most_ranks);
  const std::int64_t tensor = source.whole("tensor-model-parallel-size", 1, 1, most_ranks);
  const std::int64_t usual = defaults.expert_tensor > 0 ? defaults.expert_tensor : tensor;
  const std::int64_t inner = source.whole("expert-tensor-parallel-size", usual, 1, most_ranks);
  if (!source.around().model || !source.around().model->experts) return;
  source.put("strategy.moe.kernel", grouped ? "grouped" : "loop", "moe-grouped-gemm");
  source.put("strategy.moe.expert_parallel", parallel, "expert-model-parallel-size");
  // Unless they say otherwise, experts are divided like the layers.
  if (parallel > 1 || source.says("expert-tensor-parallel-size"))
    source.put("strategy.moe.expert_tensor_parallel", inner,
               source.says("expert-tensor-parallel-size") || defaults.expert_tensor > 0
                   ? "expert-tensor-parallel-size"
                   : "tensor-model-parallel-size");
  const bool hybrid = backend == "hybridep";
  const bool deep = dispatcher == "flex" && (direct || backend == "deepep" || hybrid);
  source.put("strategy.moe.dispatcher",
             !deep               ? "all_to_all"
             : hybrid && !direct ? "hybridep"
                                 : "deepep",
             deep && !direct ? "moe-flex-dispatcher-backend" : "moe-token-dispatcher-type");
  if (source.on("overlap-moe-expert-parallel-comm") && parallel > 1)
    source.put("strategy.moe.overlap", true, "overlap-moe-expert-parallel-comm");
  if (source.on("delay-wgrad-compute") && parallel > 1)
    source.put("strategy.moe.delay_weight_gradients", true, "delay-wgrad-compute");
  if (dispatcher == "allgather" && parallel > 1)
    source.without("moe-token-dispatcher-type", "allgather is counted as alltoall");
}

// These are layers of each piece of the model: those of the first and the last stage may have a
// number of their own, or embedding and head count as layers of the first and the last piece.
struct MegatronLayers {
  std::int64_t first = 0, last = 0;  // of a stage; 0: like the others
  bool embedding = false, loss = false;

  std::int64_t counted(std::int64_t layers) const {
    return layers + (embedding ? 1 : 0) + (loss ? 1 : 0);
  }
};
MegatronLayers read_layers_of_stages(MappedSource& source) {
  const auto said = [&](std::string_view key, std::string_view other) {
    return std::max(source.whole(key, 0, 1, 1000), source.whole(other, 0, 1, 1000));
  };
  return {.first = said("decoder-first-pipeline-num-layers", "num-layers-in-first-pipeline-stage"),
          .last = said("decoder-last-pipeline-num-layers", "num-layers-in-last-pipeline-stage"),
          .embedding = source.on("account-for-embedding-in-pipeline-split"),
          .loss = source.on("account-for-loss-in-pipeline-split")};
}

std::vector<std::int64_t> megatron_layers(const MegatronLayers& said, std::int64_t layers,
                                          std::int64_t stages, std::int64_t pieces) {
  const std::int64_t named = (said.first > 0 ? 1 : 0) + (said.last > 0 ? 1 : 0);
  if (named == 0 && !said.embedding && !said.loss) return {};
  std::vector<std::int64_t> each(static_cast<std::size_t>(stages * pieces));
  const std::int64_t between =
      stages > named ? (layers - said.first - said.last) / (stages - named) : 0;
  for (std::size_t i = 0; i < each.size(); ++i) {
    const auto stage = static_cast<std::int64_t>(i) % stages;
    const std::int64_t own = stage == 0 ? said.first : stage == stages - 1 ? said.last : 0;
    each[i] = (named == 0 ? said.counted(layers) / stages : own > 0 ? own : between) / pieces;
  }
  if (named > 0) return each;
  each.front() -= said.embedding ? 1 : 0;
  each.back() -= said.loss ? 1 : 0;
  return each;
}

// Returns the schedules of the forerunner that splits backward passes: README.md of
// github.com/sail-sg/zero-bubble-pipeline-parallelism.
std::string split_schedule(MappedSource& source, const MegatronDegrees& degrees) {
  const std::string setup = source.text("zero-bubble-v-schedule-mem-setup", "zb");
  const std::string pending = source.text("zero-bubble-max-pending-backward", "auto");
  if (source.on("zero-bubble-v-schedule"))
    return setup == "half" ? "v_half" : setup == "min" ? "v_min" : "zbv";
  if (!source.on("enable-zero-bubble")) return "";
  if (pending != std::to_string(degrees.stages))
    source.without(
        "zero-bubble-max-pending-backward",
        fmt::format("{} micro-batches under way; counted with as many as stages", pending));
  return "zb_h1";
}

void read_megatron_stages(MappedSource& source, const MegatronDegrees& degrees) {
  constexpr std::string_view layers_key = "num-layers-per-virtual-pipeline-stage",
                             pieces_key = "num-virtual-stages-per-pipeline-rank";
  const std::int64_t per_piece = source.whole(layers_key, 0, 1, 1000);
  std::int64_t pieces = source.whole(pieces_key, 1, 1, 1000);
  const std::int64_t layers = source.around().model ? source.around().model->layers : 0;
  const MegatronLayers said = read_layers_of_stages(source);
  const std::string split = split_schedule(source, degrees);
  if (degrees.stages < 2 || layers == 0) return;
  if (per_piece > 0) pieces = said.counted(layers) / degrees.stages / per_piece;
  std::string_view key = per_piece > 0 ? layers_key : pieces_key;
  if (split == "zb_h1") key = "enable-zero-bubble", pieces = 1;
  if (split.size() > 0 && split != "zb_h1") key = "zero-bubble-v-schedule", pieces = 2;
  source.put("strategy.pipeline_parallel.schedule",
             !split.empty() ? split
             : pieces > 1   ? "interleaved"
                            : "1f1b",
             key);
  if (pieces > 1) source.put("strategy.pipeline_parallel.virtual_stages", pieces, key);
  if (const std::vector<std::int64_t> shares =
          megatron_layers(said, layers, degrees.stages, pieces);
      !shares.empty())
    source.put("strategy.pipeline_parallel.layers", fmt::format("[{}]", fmt::join(shares, ", ")),
               said.embedding ? "account-for-embedding-in-pipeline-split"
               : said.loss    ? "account-for-loss-in-pipeline-split"
                              : "decoder-first-pipeline-num-layers");
}

// ---- Megatron-SWIFT: models of the hub, rows or pairs of a data set ----

bool says_grpo(const Table& root) {
  for (const std::string_view key : {"rlhf_type", "rlhf-type"})
    if (root.has(key) && root.text_or(key, "") == "grpo") return true;
  return false;
}

void read_swift_job(MappedSource& source) {
  const std::vector<std::string> known{"dpo", "kto", "rm", "grpo"};
  const SourceQuestion& question = source.question();
  const bool rlhf = question.launch != nullptr && question.launch->program.ends_with("rlhf");
  const std::string type = source.text("rlhf-type", rlhf ? "dpo" : "");
  if (!type.empty() && !holds(known, type))
    return source.problem("rlhf-type",
                          fmt::format("{} is not read yet; expected {}", type, one_of(known)));
  source.put("job.method", type == "kto" ? "kto" : type.empty() ? "sft" : "dpo", "rlhf-type");
  if (!type.empty())
    source.put("job.reference_model", type == "rm" ? "false" : "true", "rlhf-type");
  const bool packed = type.empty() && source.on("packing");
  source.put("job.sequence", source.whole("max-length", 2048, 1, most_tokens), "max-length");
  source.put("job.packing", packed, "packing");
  DataOfSource data{.packed = packed, .pairs = !type.empty()};
  data.padding_key = "padding-free";
  data.padding = source.on("padding-free", true) ? Padding::none : Padding::longest;
  data.epochs = source.number("num-train-epochs", 1, 0.001, 1e6);
  data.steps_said = source.says("train-iters");
  if (!data.steps_said)
    source.put("job.epochs", fmt::format("{}", data.epochs), "num-train-epochs");
  assume_data(question, data, source.result());
}

void read_megatron_adapter(MappedSource& source) {
  if (source.text("tuner-type", source.text("train-type", "full")) == "full") return;
  put_adapter(
      source,
      {.rank_key = "lora-rank", .modules_key = "target-modules", .usual_modules = "all-linear"});
}

// Reads the block of Megatron-Bridge's files that trains adapters alone.
void read_bridge_adapter(MappedSource& source) {
  constexpr std::string_view rank_key = "dim", modules_key = "target-modules";
  if (source.keys_below("peft").empty()) return;
  const Table known = source.facts().table("peft_modules");
  std::vector<std::string> modules;
  const std::vector<std::string> said = words_at(source, modules_key);
  for (const std::string& each : known.keys())
    if (holds(said, each)) append(modules, known.texts(each));
  if (said.empty() ||
      std::ranges::all_of(known.keys(), [&](const std::string& each) { return holds(said, each); }))
    modules = {"all-linear"};
  put_adapter(source, {.rank_key = rank_key,
                       .modules_key = modules_key,
                       .usual_rank = 32,
                       .modules = std::move(modules)});
}

}  // namespace

MegatronDegrees megatron_degrees(MappedSource& source) {
  return {.tensor = source.whole("tensor-model-parallel-size", 1, 1, most_ranks),
          .stages = source.whole("pipeline-model-parallel-size", 1, 1, most_ranks),
          .context = source.whole("context-parallel-size", 1, 1, most_ranks)};
}

void put_megatron_division(MappedSource& source, const MegatronDegrees& degrees,
                           const MegatronDefaults& defaults) {
  read_sharding(source, defaults);
  read_types(source, defaults);
  read_precision(source);
  read_recomputing(source, defaults);
  read_tensor(source, degrees);
  read_experts(source, defaults);
  read_megatron_stages(source, degrees);
}

void put_recomputing(MappedSource& source, const RecomputeKeys& keys, const std::string& said) {
  const std::string method = source.text(keys.method, "uniform");
  const std::int64_t count = source.whole(keys.layers, 1, 1, 1000);
  const std::string list = source.text(keys.modules);
  std::vector<std::string> modules{list};
  if (list.empty()) modules = {"core_attn"};
  if (list.starts_with('[')) modules = source.texts(keys.modules);
  const std::vector<std::string> known{"none", "selective", "full"};
  if (std::find(known.begin(), known.end(), said) == known.end())
    return source.problem(keys.granularity, expected_one_of(known, said));
  source.put("strategy.checkpointing", said, keys.granularity);
  if (said == "selective")
    source.put("strategy.recompute_modules", fmt::format("[{}]", fmt::join(modules, ", ")),
               keys.modules);
  if (said != "full" || !source.says(keys.method) || !source.around().model) return;
  // `block` computes so many layers of each stage again, `uniform` keeps one input in so many.
  const double layers =
      static_cast<double>(source.around().model->layers) / static_cast<double>(keys.stages);
  if (method == "block" && static_cast<double>(count) < layers)
    source.put("strategy.checkpoint_every", fmt::format("{}", layers / static_cast<double>(count)),
               keys.layers, fmt::format("{} of {} layers of a stage", count, layers));
  else if (method == "uniform" && count > 1)
    source.without(keys.layers, "the input of every layer is kept");
}

Translation translate_megatron_swift(const SourceQuestion& question, const Document& document) {
  const bool grpo = says_grpo(document.root());
  MappedSource source(
      question, document, "Megatron-SWIFT",
      grpo ? "programs/megatron/megatron-swift-grpo" : "programs/megatron/megatron-swift",
      NamesOfKeys::last_parts);
  const MegatronDegrees degrees = megatron_degrees(source);
  source.put_model("model");
  const GpusOfSource learners = gpus_of(question);
  assume_machine(question, source.root(), source.result(),
                 grpo ? swift_grpo_machine(source, learners) : learners);
  source.look_around();
  source.put_stack();
  source.put("recipe", "megatron-swift", "");
  if (grpo)
    put_swift_grpo(source, learners);
  else
    read_swift_job(source);
  put_megatron_division(source, degrees,
                        {.distributed = true,
                         .grouped = true,
                         .recompute = "selective",
                         .dispatcher = "alltoall",
                         .expert_tensor = 1});
  read_megatron_adapter(source);
  source.put_mapped();
  return source.finish();
}

Translation translate_megatron(const SourceQuestion& question, const Document& document) {
  MappedSource source(question, document, "Megatron", "programs/megatron/megatron",
                      NamesOfKeys::last_parts);
  const MegatronDegrees degrees = megatron_degrees(source);
  if (source.says("model") && !source.says("num-layers"))
    source.put_model("model");  // Primus names it
  else if (!question.decides("model"))
    source.put("model", described_model(source), "num-layers");
  assume_machine(question, source.root(), source.result(), gpus_of(question));
  source.look_around();
  source.put_stack();
  source.put("job.method", "sft", "");
  read_job(source);
  read_megatron_saves(source);
  put_megatron_division(source, degrees, {});
  read_bridge_adapter(source);
  source.put_mapped();
  return source.finish();
}

}  // namespace stepsim
