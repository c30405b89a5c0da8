#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <string>

#include "scenarios/foreign/programs/programs.hpp"
#include "scenarios/foreign/programs/trl/python_source.hpp"
#include "scenarios/foreign/programs/trl/trl_method.hpp"
#include "scenarios/foreign/table/trainer_adapters.hpp"
#include "scenarios/foreign/wrapped/wrapped_source.hpp"
#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

// Returns what Unsloth's adapters are told of inputs that are kept: its own way, unless another is
// said (unsloth/models/llama.py, get_peft_model: use_gradient_checkpointing = "unsloth").
std::string checkpoints_as_unsloth(MappedSource& source) {
  const bool own = source.root().has("unsloth") && source.on("use_peft");
  return source.text("use_gradient_checkpointing", own ? "unsloth" : "");
}

void read_trl_kernels(TrainerReader& reader, bool liger, bool plain) {
  MappedSource& source = reader.source();
  const std::string named = source.text("attn_implementation");
  if (source.on("use_flash_attention_2") && !source.says("attn_implementation"))
    source.put("strategy.attention", "flash", "use_flash_attention_2");
  else if (!named.empty())
    put_attention(source, "attn_implementation", named, reader.packed());
  else
    source.put("strategy.attention", reader.packed() ? "sdpa_efficient" : "sdpa",
               "attn_implementation", "PyTorch's own is the models' usual one");
  // Unsloth's name for inputs of layers that wait on the host.
  constexpr std::string_view unsloth_key = "use_gradient_checkpointing";
  const bool elsewhere = checkpoints_as_unsloth(source) == "unsloth";
  if (source.on("activation_offloading") || elsewhere)
    source.put("strategy.offload.activations", "cpu",
               elsewhere ? unsloth_key : "activation_offloading");
  // Probabilities of tokens are found as the stack does it, and a head of labels has none.
  if (reader.grpo() || reader.wordless()) return;
  const std::string loss = source.text("loss_type");
  const bool fused = liger || source.on("use_liger_loss");
  if (reader.pairs()) {
    // Otherwise it hangs on who shards and on the release: the stack's defaults say it.
    if (fused) source.put("strategy.cross_entropy", "fused", "use_liger_kernel");
  } else if (plain && !fused) {
    source.put("strategy.cross_entropy", "logits", "", "as the model's own code finds it");
  } else if (loss == "nll" && !fused) {
    source.put("strategy.cross_entropy", "logits", "loss_type");
  } else {
    source.put("strategy.cross_entropy", "fused", fused ? "use_liger_kernel" : "loss_type",
               fused ? "" : "chunk by chunk with the head");
  }
}

// Names who runs a training: TRL, the trainer of transformers, a loop of one's own,
// sentence-transformers.
struct Runner {
  std::string_view name = "TRL", stacks = "stacks", stacks_with_liger = "stacks_with_liger";
  std::vector<std::string> releases{"trl", "transformers", "peft", "deepspeed"};
};

Runner runner_of(const SourceQuestion& question, bool plain) {
  const std::string program = question.launch == nullptr ? std::string() : question.launch->program;
  constexpr std::string_view liger = "stacks_of_trainer_with_liger";
  if (program.find("SentenceTransformer") != std::string::npos ||
      program.find("CrossEncoder") != std::string::npos)
    return {"sentence-transformers",
            "stacks_of_texts",
            liger,
            {"sentence-transformers", "transformers", "peft"}};
  if (!plain) return {};
  const bool loop = program == own_loop;
  return {loop ? "a loop of its own" : "transformers' Trainer",
          loop ? "stacks_of_loop" : "stacks_of_trainer",
          liger,
          {"transformers", "peft", "deepspeed"}};
}

// The first of these words that a file says, in small letters.
std::string first_word_of(MappedSource& source, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys)
    if (source.says(key)) return in_small_letters(source.text(key));
  return "";
}

// A file or its folder is called by the method: "sft/qlora/internlm-20b-sft-qlora.json".
bool is_called(const MappedSource& source, std::string_view word) {
  const std::filesystem::path file(source.question().file);
  const std::string name =
      in_small_letters((file.parent_path().filename() / file.filename()).string());
  return name.find(word) != std::string::npos;
}

// A rank is said for adapters: without a word that turns them off they are on, but for TRL's own
// programs, which want `use_peft`.
bool has_adapters(MappedSource& source) {
  const std::string mode = first_word_of(source, {"train_mode", "train_type", "finetune_mode"});
  if (mode == "full") return false;
  if (source.on("use_peft") || mode.find("lora") != std::string::npos) return true;
  if (source.on("load_in_4bit") && !source.says("use_peft")) {
    source.result().assumptions.push_back(
        {"adapters", "LoRA", "matrices of 4 bits cannot be trained, so adapters are; none are said",
         "--set use_peft=false"});
    return true;
  }
  const std::string program =
      source.question().own_program ? in_small_letters(source.question().launch->program) : "";
  if (!source.says("use_peft") && !source.says("lora_r") &&
      program.find("lora") != std::string::npos) {
    source.result().assumptions.push_back({"adapters", "LoRA",
                                           fmt::format("the program is called {}, and is not here",
                                                       source.question().launch->program),
                                           "--set use_peft=false"});
    return true;
  }
  if (source.says("use_peft") || !source.says("lora_r") ||
      source.whole("lora_r", 0, 0, most_lora_rank) == 0)
    return false;
  const Launch* launch = source.question().launch;
  const bool of_trl = launch != nullptr &&
                      (launch->program.starts_with("trl ") || launch->program.starts_with("trl."));
  source.result().assumptions.push_back(
      {"adapters", of_trl ? "none" : "LoRA",
       of_trl ? "lora_r is said, and use_peft, which turns adapters on, is not"
              : "a rank is said, and no key turns adapters off",
       of_trl ? "--set use_peft=true" : "--set use_peft=false"});
  return !of_trl;
}

std::string format_of(MappedSource& source, bool four) {
  const std::string bits = first_word_of(source, {"load_in_kbits", "bits", "quantization_bit"});
  if (!four && (source.on("load_in_8bit") || bits == "8")) return bitsandbytes_format(8);
  if (!four) return "";
  if (source.says("format_of_4_bits")) return source.text("format_of_4_bits");
  // BitsAndBytesConfig of transformers has FP4, TRL's ModelConfig NF4; both leave scales alone.
  // Unsloth has a configuration of its own, as have scripts that name no type beside their bits:
  // those that say `bits` follow QLoRA's own program, whose scales are quantised.
  const bool unsloth = source.root().has("unsloth"),
             typed = source.says("bnb_4bit_quant_type") || source.says("bnb_4bit_compute_dtype") ||
                     source.says("bnb_4bit_use_double_quant");
  const std::string type = source.text("bnb_4bit_quant_type", typed ? "fp4" : "nf4");
  const std::string nested =
      first_word_of(source, {"bnb_4bit_use_double_quant", "use_bnb_nested_quant", "double_quant",
                             "use_nested_quant", "double_quantization"});
  return bitsandbytes_format(4, type, nested.empty() ? unsloth || !bits.empty() : is_yes(nested));
}

bool in_four_bits(MappedSource& source) {
  const std::string bits = first_word_of(source, {"load_in_kbits", "bits", "quantization_bit"});
  const std::string mode = first_word_of(source, {"train_mode", "train_type", "finetune_mode"});
  if (source.on("load_in_4bit") || bits == "4" || mode == "qlora") return true;
  if (source.says("load_in_4bit") || !bits.empty() || !mode.empty() ||
      source.question().launch != nullptr || !is_called(source, "qlora"))
    return false;
  source.result().assumptions.push_back({"frozen matrices", "4 bits",
                                         "the file or its folder is called qlora",
                                         "--set load_in_4bit=false"});
  return true;
}

// Returns whether the program makes peft's LoraConfig itself, whose defaults are a rank of 8 and no
// dropout; TRL's own settings have others.
bool configures_peft(const MappedSource& source) {
  const Launch* launch = source.question().launch;
  return launch != nullptr &&
         (launch->program.find("Trainer") != std::string::npos || launch->program == own_loop);
}

void tell_other_adapter(MappedSource& source) {
  if (source.says("other_adapter"))
    source.without("other_adapter",
                   fmt::format("{}: adapters of low rank are counted, which train more and take "
                               "longer",
                               source.text("other_adapter")));
}

void read_trl_adapter(TrainerReader& reader) {
  MappedSource& source = reader.source();
  constexpr std::string_view dimension = "lora_dim";  // of DeepSpeed-Chat: above 0 it is on
  const std::int64_t own_rank = source.whole(dimension, 0, 0, most_lora_rank);
  tell_other_adapter(source);
  if (own_rank == 0 && !has_adapters(source)) return;
  std::vector<std::string> modules = words_at(source, "lora_target_modules");
  if (own_rank > 0 && modules.empty()) modules = {"all-linear"};
  if (own_rank > 0 && !source.on("only_optimize_lora"))
    source.without(dimension, "all other parameters are frozen");
  // unsloth/models/llama.py and vision.py, get_peft_model: all matrices of the layers.
  if (modules.empty() && source.root().has("unsloth")) modules = {"all-linear"};
  if (source.says("matrices_found"))
    source.result().assumptions.push_back({"matrices with adapters", "all of the layers",
                                           "the program finds them by a loop over its modules",
                                           "--set lora_target_modules=q_proj,v_proj"});
  if (modules.empty() && source.question().own_program)
    source.result().assumptions.push_back({"matrices with adapters", "queries and values",
                                           "the program's own code may choose others",
                                           "--set lora_target_modules=all-linear"});
  if (source.question().own_program && own_rank == 0 && !source.says("lora_r"))
    source.result().assumptions.push_back({"rank of adapters", "16",
                                           "the program's own code may choose another",
                                           "--set lora_r=..."});
  const std::string format = format_of(source, in_four_bits(source));
  const bool own_config = configures_peft(source);
  put_adapter(source, {.rank_key = own_rank > 0 ? dimension : "lora_r",
                       .modules_key = "lora_target_modules",
                       .usual_rank = own_config ? 8 : 16,
                       .rank = own_rank,
                       .modules = std::move(modules),
                       .format = format,
                       .format_key = format == "int8" ? "load_in_8bit" : "load_in_4bit",
                       .whole_key = "lora_modules_to_save",
                       .dora_key = source.says("lora_use_dora") ? "lora_use_dora" : "use_dora",
                       .dropout_key = "lora_dropout",
                       .usual_dropout = own_config ? std::optional(0.0) : std::nullopt});
}

// Tells what is not known of a program of somebody's own.
void tell_program(TrainerReader& reader, bool plain, bool older) {
  MappedSource& source = reader.source();
  std::vector<Assumption>& assumptions = source.result().assumptions;
  if (source.says("unknown_trainer"))
    assumptions.push_back(
        {"trainer", "the one of transformers",
         fmt::format("{} is not among the files here", source.text("unknown_trainer")),
         "the settings that it changes by --set"});
  if (plain && !source.says(older ? "max_seq_length" : "max_length") &&
      !source.question().decides("job.sequence"))
    assumptions.push_back({"where rows are cut", fmt::format("{} tokens", reader.usual_length()),
                           "the program does not say, and its trainer cuts nothing",
                           "--set max_length=N"});
}

// Options as the block of a file, each in its line.
Document as_file(const Document& options, const std::string& file) {
  const Table said = options.root();
  std::string text = "{task: llm, params: {";
  int line = 1;
  for (const std::string& key : said.keys()) {
    const auto origin = said.origin(key);
    for (const int there = origin ? origin->line : 0; line < there; ++line) text += '\n';
    text += fmt::format("{}: {}, ", key, said.one_line(key));
  }
  return parse_document(text + "}}", file);
}

}  // namespace

Translation translate_trl(const SourceQuestion& question, const Document& source) {
  const Table root = source.root();
  const bool older = root.has("max_seq_length") && !root.has("max_length");
  std::vector<Assumption> assumptions;
  const TrlMethod method = read_trl_method(question, root, assumptions);
  const Runner runner = runner_of(question, method.plain);
  TrainerReader reader(
      question, source,
      {.name = question.known ? std::string_view(question.known->title) : runner.name,
       .table = question.known ? std::string_view(question.known->table) : "programs/trl/trl",
       .training = method.training,
       .method_key = method.key,
       .length_key = older ? "max_seq_length" : "max_length",
       .padding_free_key = "padding_free",
       .loads = TrainerProgram::Loads::by_dtype,
       .accelerate_files = "programs/trl/trl-accelerate",
       .leave_one_out = method.leave_one_out,
       .plain = method.plain,
       .stacks = runner.stacks,
       .stacks_with_liger = runner.stacks_with_liger,
       .releases = runner.releases});
  MappedSource& words = reader.source();
  const bool liger = words.on("use_liger_kernel"), grpo = reader.grpo();
  if (method.leave_one_out && words.on("own_rloo"))
    words.problem("rloo_k",
                  "RLOO of TRL before 0.22 is not read: num_generations and keys of GRPO are");
  reader.read_surroundings(liger, "use_liger_kernel");
  append(words.result().assumptions, std::move(assumptions));
  grpo ? reader.read_grpo() : reader.read_job();
  // Nothing of a model is frozen unless adapters are.
  const bool whole = !words.on("use_peft");
  if (!grpo)
    put_images(words, {.trains_tower = whole, .trains_projector = whole, .others = {"sees"}});
  tell_program(reader, method.plain, older);
  reader.read_sharding();
  // TRL has it on unless it is told otherwise, the trainer below it off.
  const std::string of_unsloth = checkpoints_as_unsloth(words);
  const bool few_bits = words.on("load_in_4bit") || words.on("load_in_8bit");
  const bool by_trainer = words.on("checkpoints_beside_bits") && few_bits && !method.plain &&
                          words.text("prepares_for_kbit") == "trainer";
  reader.read_checkpointing("gradient_checkpointing",
                            words.on("gradient_checkpointing", !method.plain) ||
                                words.on("checkpointing_enabled") || is_yes(of_unsloth) ||
                                of_unsloth == "unsloth" || by_trainer);
  const bool loop = question.launch != nullptr && question.launch->program == own_loop;
  if (!grpo && !loop) reader.read_saves();
  if (!loop) reader.read_evaluation();
  read_trl_kernels(reader, liger, method.plain);
  read_trl_adapter(reader);
  return reader.finish();
}

Translation translate_autotrain(const SourceQuestion& question, const Document& source) {
  const bool is_file = source.root().has("task");
  std::optional<Document> own;
  if (!is_file) own = as_file(source, question.file);
  const auto read = read_dialect(question.data, own ? *own : source);
  if (!read)
    throw UserError({{question.file, question.launch == nullptr ? 0 : question.launch->line, "",
                      "AutoTrain trains no language model there: task: llm does"}});
  Launch launch = question.launch == nullptr ? Launch{} : *question.launch;
  launch.program = read->program;
  SourceQuestion asked = question;
  asked.launch = &launch;
  Translation translation = translate_trl(asked, document_in_lines(read->settings, question.file));
  translation.notes.insert(translation.notes.begin(), read->notes.begin(), read->notes.end());
  return translation;
}

}  // namespace stepsim
