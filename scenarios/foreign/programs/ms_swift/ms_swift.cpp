#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "scenarios/foreign/programs/hf/trainer_reader.hpp"
#include "scenarios/foreign/programs/programs.hpp"
#include "scenarios/foreign/table/trainer_adapters.hpp"
#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"

namespace stepsim {
namespace {

HfTraining swift_training_of(const SourceQuestion& question, const Document& document) {
  const Table root = document.root();
  const bool rlhf = question.launch != nullptr && question.launch->program.ends_with("rlhf");
  const std::string task = in_small_letters(root.text_or("task_type", ""));
  if (task == "seq_cls" || task == "reranker") return HfTraining::classify;
  if (task == "embedding") return HfTraining::embed;
  if (!rlhf && !root.has("rlhf_type")) return HfTraining::sft;
  const std::string type = root.text_or("rlhf_type", "dpo");
  const std::vector<std::string> known{"dpo", "orpo", "simpo", "kto", "cpo", "rm", "grpo"};
  if (type == "dpo") return HfTraining::dpo;
  if (type == "orpo" || type == "simpo" || type == "cpo") return HfTraining::alone;
  if (type == "kto") return HfTraining::kto;
  if (type == "rm") return HfTraining::reward;
  if (type == "grpo") return HfTraining::grpo;
  const auto origin = root.origin("rlhf_type");
  const bool other = type == "ppo" || type == "gkd";
  throw UserError({{question.file, origin ? origin->line : 0, "rlhf_type",
                    other ? fmt::format("{} is not read yet; expected {}", type, one_of(known))
                          : expected_one_of(known, type)}});
}

void read_swift_adapter(TrainerReader& reader) {
  MappedSource& source = reader.source();
  const std::string_view type_key = source.says("train_type") ? "train_type" : "tuner_type";
  const std::string type = source.text(type_key, "lora");
  if (type == "full") return;
  if (type != "lora") source.without(type_key, "adapters as LoRA has them");
  const std::int64_t bits = source.whole("quant_bits", 0, 0, 16);
  const std::string type_of_bits = source.text("bnb_4bit_quant_type"),
                    method = source.text("quant_method", "bnb");
  const bool nested = source.on("bnb_4bit_use_double_quant", true);
  const std::string format = method == "bnb" ? bitsandbytes_format(bits, type_of_bits, nested)
                             : method == "hqq" && bits == 4 ? "hqq"
                                                            : "";
  if (bits != 0 && format.empty())
    source.without("quant_bits", "frozen matrices are counted with 16 bits");
  put_adapter(source, {.rank_key = "lora_rank",
                       .modules_key = "target_modules",
                       .usual_modules = "all-linear",
                       .format = format,
                       .format_key = "quant_bits",
                       .whole_key = "modules_to_save",
                       .dora_key = "use_dora",
                       .dropout_key = "lora_dropout"});
}

// swift/sequence_parallel/sequence_parallel.py: Ulysses over as many GPUs as divide the heads of
// keys and values alike, and a ring over these groups.
void put_swift_sequence(MappedSource& source) {
  constexpr std::string_view key = "sequence_parallel_size";
  const std::int64_t ranks = source.whole(key, 1, 1, most_ranks);
  if (ranks == 1) return;
  const auto& model = source.around().model;
  const std::int64_t heads =
                         model && model->attention.kv_heads > 0 ? model->attention.kv_heads : ranks,
                     columns = std::gcd(heads, ranks);
  if (columns > 1)
    source.put(
        "strategy.sequence_parallel.ulysses", columns, key,
        columns < ranks ? fmt::format("what divides {} heads of keys and values", heads) : "");
  if (columns < ranks)
    source.put("strategy.sequence_parallel.ring", ranks / columns, key, "over the others");
}

void read_swift_kernels(TrainerReader& reader, bool liger) {
  MappedSource& source = reader.source();
  if (const std::string named = source.text("attn_impl"); !named.empty())
    put_attention(source, "attn_impl", named, reader.packed());
  else
    source.put("strategy.attention", "sdpa", "attn_impl", "PyTorch's own is the models' usual one");
  put_swift_sequence(source);
  if (reader.grpo() || reader.wordless()) return;
  if (reader.pairs())
    source.put("strategy.cross_entropy", "logits_16", "rlhf_type", "of pairs, over all logits");
  else
    source.put("strategy.cross_entropy", liger ? "fused" : "logits", "use_liger_kernel");
}

// Returns so many micro-batches that a step has sixteen rows, where it is not told.
std::int64_t swift_batches(const SourceQuestion& question, const Document& source) {
  const std::int64_t rows = source.root().integer_or(hf_rows_key, 1, 1, most_rows),
                     gpus = std::max<std::int64_t>(1, gpus_of(question).gpus);
  return std::max<std::int64_t>(1, (16 + rows * gpus - 1) / (rows * gpus));
}

// qwen_vl_utils takes the bound of an image's pixels from the environment.
double most_pixels_of(const SourceQuestion& question) {
  if (question.launch == nullptr) return 0;
  const auto said = question.launch->environment.find("MAX_PIXELS");
  double pixels = 0;
  if (said == question.launch->environment.end()) return pixels;
  const std::string& text = said->second.text;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), pixels);
  return read.ec == std::errc() ? pixels : 0;
}

}  // namespace

Translation translate_ms_swift(const SourceQuestion& question, const Document& source) {
  TrainerReader reader(question, source,
                       {.name = "ms-swift",
                        .table = "programs/ms_swift/ms-swift",
                        .training = swift_training_of(question, source),
                        .method_key = "rlhf_type",
                        .length_key = "max_length",
                        .length = 2048,
                        .model_key = "model",
                        .rows = 1,
                        .batches = swift_batches(question, source),
                        .padding_free_key = "padding_free",
                        .prompt_key = "max_length",
                        .deepspeed_by_name = true});
  MappedSource& words = reader.source();
  const bool liger = words.on("use_liger_kernel");
  if (!words.says("max_length"))
    words.note(
        "max_length is not said, so that the model's own limit counts: rows are taken to be "
        "at most 2048 long");
  reader.read_surroundings(liger, "use_liger_kernel");
  reader.grpo() ? reader.read_grpo() : reader.read_job();
  if (!reader.grpo())
    put_images(words, {.tower_key = "freeze_vit",
                       .projector_key = "freeze_aligner",
                       .pixels_key = "max_pixels",
                       .most_pixels = most_pixels_of(question)});
  reader.read_sharding();
  reader.read_checkpointing("gradient_checkpointing", words.on("gradient_checkpointing", true));
  if (!reader.grpo())
    reader.read_saves();
  else if (words.on("padding_free"))
    words.without("padding_free", "rows are counted as long as their limit allows");
  reader.read_evaluation();
  read_swift_kernels(reader, liger);
  read_swift_adapter(reader);
  return reader.finish();
}

}  // namespace stepsim
