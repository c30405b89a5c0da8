#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "scenarios/foreign/programs/programs.hpp"
#include "scenarios/foreign/table/assumed.hpp"
#include "scenarios/foreign/table/mapped_source.hpp"

namespace stepsim {
namespace {

constexpr std::int64_t widest_nanotron = 1'000'000;

// The widths of the model, which the file says in the words of transformers.
struct NanotronShape {
  std::int64_t layers = 0, hidden = 0, inner = 0, heads = 0, groups = 0, words = 0, positions = 0;
};

std::string in_model(std::string_view key) {
  return fmt::format("model.model_config.{}", key);
}

NanotronShape read_nanotron_shape(MappedSource& source) {
  const auto width = [&](std::string_view key, std::int64_t usual) {
    return source.whole(in_model(key), usual, 1, widest_nanotron);
  };
  NanotronShape shape{
      .layers = width("num_hidden_layers", 32),
      .hidden = width("hidden_size", 4096),
      .inner = width("intermediate_size", 11008),
      .heads = width("num_attention_heads", 32),
      .words = source.whole(in_model("vocab_size"), 32000, 1, 100'000'000),
      .positions = source.whole(in_model("max_position_embeddings"), 2048, 1, 1'000'000'000)};
  shape.groups = width("num_key_value_heads", shape.heads);
  // Words are filled up, so that ranks of tensor parallelism share them.
  const std::int64_t piece = source.whole("model.make_vocab_size_divisible_by", 1, 1, 1 << 20) *
                             source.whole("parallelism.tp", 1, 1, most_ranks);
  shape.words = (shape.words + piece - 1) / piece * piece;
  return shape;
}

void put_nanotron_model(MappedSource& source, const NanotronShape& shape) {
  if (source.question().decides("model")) return;
  std::string architecture = "LlamaForCausalLM";
  for (const auto& [mark, name] : {std::pair{"is_qwen2_config", "Qwen2ForCausalLM"},
                                   std::pair{"is_starcoder2_config", "Starcoder2ForCausalLM"}})
    if (source.on(in_model(mark))) architecture = name;
  if (!source.keys_below(in_model("moe_config")).empty())
    source.problem(in_model("moe_config"), "nanotron's own experts are not modelled");
  source.put("model",
             fmt::format("{{architectures: [{}], name: {} layers of {}, num_hidden_layers: {}, "
                         "hidden_size: {}, intermediate_size: {}, num_attention_heads: {}, "
                         "num_key_value_heads: {}, vocab_size: {}, max_position_embeddings: {}, "
                         "tie_word_embeddings: {}}}",
                         architecture, shape.layers, shape.hidden, shape.layers, shape.hidden,
                         shape.inner, shape.heads, shape.groups, shape.words, shape.positions,
                         source.on(in_model("tie_word_embeddings"))),
             "model.model_config");
}

// src/nanotron/models/base.py, build_model: a stage takes blocks until their costs exceed its
// share; layers and the head cost their parameters, the embedding nothing.
std::string layers_of_stages(const NanotronShape& shape, std::int64_t stages) {
  const double layer = static_cast<double>(4 * shape.hidden * shape.hidden) +
                       static_cast<double>(3 * shape.inner * shape.hidden),
               head = static_cast<double>(shape.words * shape.hidden),
               share =
                   (layer * static_cast<double>(shape.layers) + head) / static_cast<double>(stages);
  std::vector<std::int64_t> layers(static_cast<std::size_t>(stages));
  std::size_t stage = 0;
  for (std::int64_t each = 1; each <= shape.layers; ++each) {
    ++layers[stage];
    if (layer * static_cast<double>(each) > share * static_cast<double>(stage + 1) &&
        stage + 1 < layers.size())
      ++stage;
  }
  return fmt::format("[{}]", fmt::join(layers, ", "));
}

void put_nanotron_splits(MappedSource& source, const NanotronShape& shape) {
  const std::int64_t tensor = source.whole("parallelism.tp", 1, 1, most_ranks),
                     stages = source.whole("parallelism.pp", 1, 1, most_ranks),
                     ring = source.whole("parallelism.context_parallel_size", 1, 1, most_ranks);
  if (tensor > 1) {
    source.put("strategy.tensor_parallel.size", tensor, "parallelism.tp");
    source.put("strategy.tensor_parallel.sequence",
               source.text("parallelism.tp_mode", "ALL_REDUCE") == "REDUCE_SCATTER",
               "parallelism.tp_mode");
    if (!source.on("parallelism.tp_linear_async_communication"))
      source.without("parallelism.tp_linear_async_communication",
                     "collectives of layers run beside their products");
  }
  if (ring > 1)
    source.put("strategy.sequence_parallel.ring", ring, "parallelism.context_parallel_size");
  if (stages == 1) return;
  const bool one_by_one = source.text("parallelism.pp_engine", "afab") == "1f1b";
  source.put("strategy.pipeline_parallel.size", stages, "parallelism.pp");
  source.put("strategy.pipeline_parallel.schedule", one_by_one ? "1f1b" : "gpipe",
             "parallelism.pp_engine");
  source.put("strategy.pipeline_parallel.layers", layers_of_stages(shape, stages), "",
             "dealt out by their cost, as the head has one too");
}

void put_nanotron_job(MappedSource& source) {
  source.put("job.method", "sft", "");
  for (const auto& [theirs, ours] : std::array<std::pair<std::string_view, std::string_view>, 4>{
           {{"tokens.sequence_length", "job.sequence"},
            {"tokens.micro_batch_size", "job.micro_batch"},
            {"tokens.batch_accumulation_per_replica", "job.gradient_accumulation"},
            {"tokens.train_steps", "job.optimizer_steps"}}})
    if (source.says(theirs))
      source.put(ours, source.whole(theirs, 1, 1, 1'000'000'000), theirs);
    else
      source.problem(theirs, "is missing");
  source.put("job.packing", true, "");
  source.put("job.fill", "1", "", "rows are cut out of a stream of documents");
  assume_data(source.question(), {.packed = true, .steps_said = true, .fill_said = true},
              source.result());
}

// Gradients that are added up in 32 bits stand beside parameters of 32 bits.
void put_nanotron_types(MappedSource& source) {
  constexpr std::string_view wide = "optimizer.accumulate_grad_in_fp32";
  if (source.text("model.dtype", "bfloat16") == "float32")
    return source.put("strategy.precision", "fp32", "model.dtype");
  source.put("strategy.master_weights", source.on(wide), wide);
  source.put("strategy.gradient_dtype", source.on(wide) ? "fp32" : "bf16", wide);
}

}  // namespace

Translation translate_nanotron(const SourceQuestion& question, const Document& document) {
  MappedSource source(question, document, "nanotron", "programs/nanotron/nanotron");
  const NanotronShape shape = read_nanotron_shape(source);
  put_nanotron_model(source, shape);
  std::int64_t gpus = 1;
  for (const char* degree : {"dp", "pp", "tp", "context_parallel_size", "expert_parallel_size"})
    gpus *= source.whole(fmt::format("parallelism.{}", degree), 1, 1, most_ranks);
  assume_machine(question, source.root(), source.result(),
                 {.gpus = std::min(gpus, most_ranks), .why = "the degrees make so many"});
  source.look_around();
  source.put_stack();
  put_nanotron_job(source);
  put_nanotron_splits(source, shape);
  put_nanotron_types(source);
  source.put("strategy.attention", "flash", in_model("_attn_implementation"));
  source.put("strategy.optimizer_kernels",
             source.on("optimizer.optimizer_factory.torch_adam_is_fused") ? "fused" : "foreach",
             "optimizer.optimizer_factory.torch_adam_is_fused");
  source.put_mapped();
  return source.finish();
}

}  // namespace stepsim
