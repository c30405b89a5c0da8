#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "scenarios/foreign/programs/programs.hpp"
#include "scenarios/foreign/table/assumed.hpp"
#include "scenarios/foreign/table/mapped_source.hpp"

namespace stepsim {
namespace {

constexpr std::int64_t widest_neox = 1'000'000;

std::int64_t neox_width(MappedSource& source, std::string_view key, std::int64_t most) {
  const std::int64_t value = source.whole(key, 0, 1, most);
  if (value == 0)
    source.problem(key,
                   "is missing: it is a width of the model; what gpt-neox reads from several files "
                   "goes into one");
  return value;
}

// Words of the tokenizer, filled up so that ranks can share them: GPT-2's, that of GPT-NeoX 20B
// (50,277, which two ranks fill up to the 50,432 rows of its config.json), Llama 2's.
std::int64_t neox_words(MappedSource& source, std::int64_t tensor) {
  const std::int64_t padded = source.whole("padded_vocab_size", 0, 1, 100'000'000);
  const std::int64_t piece = tensor * source.whole("make_vocab_size_divisible_by", 128, 1, 1 << 20);
  const std::string type = source.text("tokenizer_type");
  if (padded > 0) return padded;
  const bool gpt2 = type.starts_with("GPT2") || type.starts_with("HFGPT2");
  const bool named = !type.empty();
  const std::int64_t words = type == "SPMTokenizer" ? 32000 : named && !gpt2 ? 50277 : 50257;
  const std::int64_t rows = (words + piece - 1) / piece * piece;
  if (!gpt2)
    source.result().assumptions.push_back(
        {"rows of the table", std::to_string(rows),
         fmt::format("the file does not say; {} has {} words",
                     words == 32000   ? "the tokenizer of Llama"
                     : words == 50277 ? "the tokenizer of GPT-NeoX 20B"
                                      : "the usual tokenizer, GPT-2's,",
                     words),
         "--set padded_vocab_size=N"});
  return rows;
}

// Reads "[[[\"flash\"], 44]]": kinds of attention that are read, of all layers alike.
bool neox_flash(MappedSource& source) {
  constexpr std::string_view key = "attention_config";
  const std::string said = source.text(key);
  for (const std::string_view other :
       {"local", "sparse", "bigbird", "bslongformer", "gmlp", "amlp", "mamba", "rwkv"})
    if (said.find(other) != std::string::npos)
      source.problem(key, fmt::format("layers of \"{}\" are not modelled", other));
  return said.find("flash") != std::string::npos;
}

struct NeoxShape {
  std::int64_t layers = 0, hidden = 0, heads = 0, groups = 0, width = 0, positions = 0, words = 0;
  bool gated = false, tied = true, attention_bias = true, bias = true, rms = false;
};

// megatron/model/transformer.py, ParallelMLP: with a gate both matrices share two thirds of what is
// said, each rounded up to a multiple. Before, LLaMAParallelMLP took multiples of 256.
std::int64_t neox_feed_forward(MappedSource& source, const NeoxShape& shape) {
  const double ratio = source.number("expansion_factor", 4, 0.01, 1000);
  const std::int64_t usual = static_cast<std::int64_t>(ratio * static_cast<double>(shape.hidden));
  const bool older = source.text("mlp_type") == "llama";
  const std::int64_t said =
      source.whole("intermediate_size", older ? usual * 2 / 3 : usual, 1, widest_neox);
  const std::int64_t multiple = source.whole("mlp_multiple_of", 1, 1, widest_neox);
  const auto rounded = [](std::int64_t width, std::int64_t step) {
    return std::max<std::int64_t>(1, (width + step - 1) / step * step);
  };
  if (older) return rounded(said, 256);
  if (!shape.gated) return rounded(said, multiple);
  const std::int64_t each = rounded(said * 2 / 3 / 2, multiple);
  source.note(
      fmt::format("the gated feed-forward part is {} wide: gpt-neox makes both of its "
                  "matrices out of two thirds of {}",
                  each, said));
  return each;
}

NeoxShape read_neox_shape(MappedSource& source, std::int64_t tensor) {
  NeoxShape shape;
  shape.layers = neox_width(source, "num_layers", 1000);
  shape.hidden = neox_width(source, "hidden_size", widest_neox);
  shape.heads = neox_width(source, "num_attention_heads", 10'000);
  shape.groups = source.whole("num_kv_heads", shape.heads, 1, 10'000);
  const std::string activation = source.text("activation", "gelu");
  shape.gated =
      activation.ends_with("glu") || activation == "bilinear" || source.text("mlp_type") == "llama";
  shape.width = neox_feed_forward(source, shape);
  shape.positions =
      source.whole("max_position_embeddings", source.whole("seq_length", 2048, 1, most_tokens), 1,
                   1'000'000'000);
  shape.tied = !source.on("no_weight_tying");
  shape.attention_bias = source.on("use_bias_in_attn_linear", true);
  shape.bias = source.on("use_bias_in_mlp", true) && source.text("mlp_type") != "llama";
  const std::string norm = source.text("norm", "layernorm");
  shape.rms = norm.ends_with("rmsnorm");
  if (norm == "scalenorm") source.without("norm", "scalenorm: LayerNorm is counted");
  shape.words = neox_words(source, tensor);
  return shape;
}

using NeoxEntries = std::vector<std::string>;

template <class Value>
void neox_say(NeoxEntries& entries, std::string_view key, const Value& value) {
  entries.push_back(fmt::format("{}: {}", key, value));
}

// Writes the model as Llama and GPT-NeoX spell it.
NeoxEntries neox_entries(const NeoxShape& shape, std::string_view architecture) {
  NeoxEntries entries;
  neox_say(entries, "architectures", fmt::format("[{}]", architecture));
  neox_say(entries, "name", fmt::format("{} layers of {}", shape.layers, shape.hidden));
  neox_say(entries, "num_hidden_layers", shape.layers);
  neox_say(entries, "hidden_size", shape.hidden);
  neox_say(entries, "num_attention_heads", shape.heads);
  neox_say(entries, "num_key_value_heads", shape.groups);
  neox_say(entries, "intermediate_size", shape.width);
  neox_say(entries, "max_position_embeddings", shape.positions);
  neox_say(entries, "vocab_size", shape.words);
  neox_say(entries, "tie_word_embeddings", shape.tied);
  return entries;
}

// Notes what the architecture that stands for the file has otherwise.
void neox_differs(MappedSource& source, const NeoxShape& shape, bool rms, bool biased) {
  if (shape.rms != rms) source.without("norm", rms ? "RMSNorm is counted" : "LayerNorm is counted");
  if (biased && !shape.bias) source.without("use_bias_in_mlp", "counted with biases");
  if (source.on("gpt_j_tied"))
    source.without("gpt_j_tied", "attention and feed-forward are counted with a norm each");
}

NeoxEntries neox_rotary(MappedSource& source, const NeoxShape& shape) {
  const bool normed = source.on("use_qk_layernorm");
  const std::int64_t window = source.whole("sliding_window_width", 0, 0, most_tokens);
  const double share = source.number("rotary_pct", 1, 0, 1);
  if (!shape.gated) {
    NeoxEntries entries = neox_entries(shape, "GPTNeoXForCausalLM");
    neox_say(entries, "attention_bias", shape.attention_bias);
    neox_say(entries, "rotary_pct", share);
    neox_differs(source, shape, false, true);
    if (normed) source.without("use_qk_layernorm", "norms of queries and keys");
    if (window > 0) source.without("sliding_window_width", "every token sees all before it");
    return entries;
  }
  NeoxEntries entries = neox_entries(shape, normed       ? "Qwen3ForCausalLM"
                                            : window > 0 ? "MistralForCausalLM"
                                                         : "LlamaForCausalLM");
  if (window > 0) neox_say(entries, "sliding_window", window);
  if (window == 0) neox_say(entries, "attention_bias", shape.attention_bias);
  if (!normed && window == 0) neox_say(entries, "mlp_bias", shape.bias);
  if (normed) neox_say(entries, "head_dim", shape.hidden / std::max<std::int64_t>(shape.heads, 1));
  neox_differs(source, shape, true, false);
  return entries;
}

NeoxEntries neox_learned(MappedSource& source, const NeoxShape& shape) {
  NeoxEntries entries;
  neox_say(entries, "architectures", "[GPT2LMHeadModel]");
  neox_say(entries, "name", fmt::format("{} layers of {}", shape.layers, shape.hidden));
  neox_say(entries, "n_layer", shape.layers);
  neox_say(entries, "n_embd", shape.hidden);
  neox_say(entries, "n_head", shape.heads);
  neox_say(entries, "n_inner", shape.width);
  neox_say(entries, "n_positions",
           shape.positions + source.whole("opt_pos_emb_offset", 0, 0, 1 << 16));
  neox_say(entries, "vocab_size", shape.words);
  neox_say(entries, "tie_word_embeddings", shape.tied);
  return entries;
}

NeoxEntries neox_alibi(const NeoxShape& shape) {
  NeoxEntries entries;
  neox_say(entries, "architectures", "[MPTForCausalLM]");
  neox_say(entries, "name", fmt::format("{} layers of {}", shape.layers, shape.hidden));
  neox_say(entries, "n_layers", shape.layers);
  neox_say(entries, "d_model", shape.hidden);
  neox_say(entries, "n_heads", shape.heads);
  neox_say(entries, "expansion_ratio",
           static_cast<double>(shape.width) /
               static_cast<double>(std::max<std::int64_t>(shape.hidden, 1)));
  neox_say(entries, "max_seq_len", shape.positions);
  neox_say(entries, "vocab_size", shape.words);
  neox_say(entries, "tie_word_embeddings", shape.tied);
  neox_say(entries, "attn_config", fmt::format("{{alibi: true, kv_n_heads: {}}}", shape.groups));
  return entries;
}

std::string described_neox(MappedSource& source, std::int64_t tensor) {
  const NeoxShape shape = read_neox_shape(source, tensor);
  const std::string positions = source.choice("pos_emb", "learned");
  if (source.whole("moe_num_experts", 1, 1, 1024) > 1)
    source.problem("moe_num_experts", "gpt-neox's own experts are not modelled");
  NeoxEntries entries;
  if (positions == "rotary") {
    entries = neox_rotary(source, shape);
  } else {
    entries = positions == "learned" ? neox_learned(source, shape) : neox_alibi(shape);
    neox_differs(source, shape, false, true);
    if (shape.gated)
      source.without("activation", "a gate beside such positions: two matrices are counted");
    if (positions == "learned" && shape.groups != shape.heads)
      source.without("num_kv_heads", "as many heads for keys and values as for queries");
    if (!shape.attention_bias) source.without("use_bias_in_attn_linear", "counted with biases");
  }
  return fmt::format("{{{}}}", fmt::join(entries, ", "));
}

void put_neox_types(MappedSource& source, std::int64_t stage) {
  const std::string precision = source.text("precision"), type = source.text("fp16.type");
  const bool fp16 = source.on("fp16.enabled") || source.on("fp16.fp16") || precision == "fp16";
  const bool bf16 = source.on("bf16.enabled") || precision == "bfloat16" || type.starts_with("bf");
  const bool wide = source.on("fp32_allreduce");
  if (!fp16 && !bf16)
    return source.put("strategy.precision", "fp32", "precision", "neither fp16 nor bf16 is on");
  if (stage == 0)
    source.put("strategy.master_weights", true, bf16 ? "bf16.enabled" : "fp16.enabled",
               "each rank keeps all copies in 32 bits");
  if (bf16 && wide) source.put("strategy.gradient_dtype", "fp32", "fp32_allreduce");
  if (bf16) return;
  source.put("strategy.gradient_dtype", "bf16", "fp16.enabled", "gradients of fp16 stay in it");
  source.put("strategy.precision", "fp16", "fp16.enabled");
}

void put_neox_sharding(MappedSource& source, std::int64_t tensor) {
  const std::int64_t stage = source.whole("zero_optimization.stage", 0, 0, 3);
  const std::int64_t stages = source.whole("pipe_parallel_size", 0, 0, most_ranks);
  source.put("strategy.zero", stage, "zero_optimization.stage");
  const std::string device = source.text("zero_optimization.offload_optimizer.device", "none");
  const bool host = source.on("zero_optimization.cpu_offload");
  if (stage > 0 && (host || device != "none"))
    source.put(
        "strategy.offload.optimizer", host ? "cpu" : device,
        host ? "zero_optimization.cpu_offload" : "zero_optimization.offload_optimizer.device");
  const std::string parameters = source.text("zero_optimization.offload_param.device", "none");
  if (stage == 3 && parameters != "none")
    source.put("strategy.offload.parameters", parameters, "zero_optimization.offload_param.device");
  if (stages > 1) {
    source.put("strategy.pipeline_parallel.size", stages, "pipe_parallel_size");
    source.put("strategy.pipeline_parallel.schedule", "1f1b", "pipe_parallel_size");
  }
  if (tensor > 1)
    source.put("strategy.tensor_parallel.sequence", source.on("sequence_parallel"),
               "sequence_parallel");
  source.on("sequence_parallel");  // read, also where it does nothing
  put_neox_types(source, stage);
  if (source.on("use_bnb_optimizer"))
    source.put("strategy.optimizer", "adamw_8bit", "use_bnb_optimizer");
}

void put_neox_batch(MappedSource& source) {
  const bool older = source.says("batch_size") && !source.says("train_micro_batch_size_per_gpu");
  const std::string_view micro = older ? "batch_size" : "train_micro_batch_size_per_gpu";
  const bool shorter = source.says("gas") && !source.says("gradient_accumulation_steps");
  const std::string_view steps = shorter ? "gas" : "gradient_accumulation_steps";
  const std::int64_t rows = source.whole(micro, 0, 1, most_rows),
                     turns = source.whole(steps, 0, 1, most_rows),
                     batch = source.whole("train_batch_size", 0, 1, 1'000'000'000);
  if (rows == 0)
    return source.problem(micro,
                          "is missing; what gpt-neox reads from several files goes into one");
  source.put("job.micro_batch", rows, micro);
  if (turns == 0 && batch > 0) return source.put("job.global_batch", batch, "train_batch_size");
  source.put("job.gradient_accumulation", std::max<std::int64_t>(1, turns), steps);
}

void put_neox_job(MappedSource& source) {
  const std::string way = source.choice("train_impl", "normal");
  if (!source.says("seq_length")) source.problem("seq_length", "is missing");
  const bool pairs = way == "dpo" || way == "rm";
  source.put("job.method", way == "normal" ? "sft" : way == "kto" ? "kto" : "dpo", "train_impl");
  if (way != "normal")
    source.put("job.reference_model",
               way == "rm" || source.on("dpo_reference_free") ? "false" : "true", "train_impl");
  const bool packed = !pairs && source.text("pack_impl", "packed") != "unpacked";
  source.put("job.packing", packed, "pack_impl");
  if (packed) source.put("job.fill", "1", "", "rows are cut out of a stream of documents");
  DataOfSource data{.packed = packed, .pairs = pairs, .fill_said = packed};
  data.epochs = source.number("train_epochs", 1, 0.001, 1e6);
  data.steps_said = source.says("train_iters");
  if (!data.steps_said) source.put("job.epochs", fmt::format("{}", data.epochs), "train_epochs");
  assume_data(source.question(), data, source.result());
}

// Returns the GPUs that a batch of so many rows means, where micro-batch and accumulation are said.
GpusOfSource gpus_of_batch(MappedSource& source, std::int64_t tensor) {
  const std::int64_t rows = source.whole("train_micro_batch_size_per_gpu", 0, 1, most_rows),
                     turns = source.whole("gradient_accumulation_steps", 0, 1, most_rows),
                     batch = source.whole("train_batch_size", 0, 1, 1'000'000'000),
                     stages = source.whole("pipe_parallel_size", 1, 0, most_ranks);
  if (rows * turns * batch == 0 || batch % (rows * turns) != 0) return {};
  const std::int64_t copies = batch / (rows * turns),
                     gpus = copies * tensor * std::max<std::int64_t>(stages, 1);
  return {.gpus = gpus,
          .nodes = 0,
          .why = fmt::format("a batch of {} rows is {} x {} on {} copies of the model", batch, rows,
                             turns, copies)};
}

}  // namespace

Translation translate_gpt_neox(const SourceQuestion& question, const Document& document) {
  MappedSource source(question, document, "gpt-neox", "programs/gpt_neox/gpt-neox",
                      NamesOfKeys::low_lines);
  const std::int64_t tensor = source.whole("model_parallel_size", 1, 1, most_ranks);
  const bool flash = neox_flash(source);
  if (!question.decides("model")) source.put("model", described_neox(source, tensor), "num_layers");
  const std::int64_t nodes = source.whole("num_nodes", 0, -1, most_ranks),
                     gpus = source.whole("num_gpus", 0, 1, most_ranks);
  assume_machine(question, source.root(), source.result(),
                 nodes > 0 && gpus > 0 ? GpusOfSource{.gpus = nodes * gpus,
                                                      .nodes = nodes,
                                                      .why = "num_nodes and num_gpus say so"}
                                       : gpus_of_batch(source, tensor));
  source.look_around();
  source.put_stack();
  put_neox_job(source);
  put_neox_batch(source);
  put_neox_sharding(source, tensor);
  source.put("strategy.attention", flash ? "flash" : "eager", "attention_config",
             flash ? "" : "its own kernel over all scores");
  const std::int64_t saves = source.whole("checkpoint_factor", 0, 1, 1'000'000'000);
  if (saves > 0) source.without("checkpoint_factor", "checkpoints come on top of the training");
  source.put_mapped();
  return source.finish();
}

}  // namespace stepsim
