#include "scenarios/foreign/programs/trl/trl_method.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "scenarios/foreign/programs/trl/python_source.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

struct MethodName {
  std::string_view name;
  HfTraining training;
};
constexpr std::string_view rloo = "rloo";
// Longer names stand before those that they hold.
constexpr std::array trainer_methods{MethodName{"orpo", HfTraining::alone},
                                     MethodName{"grpo", HfTraining::grpo},
                                     MethodName{rloo, HfTraining::grpo},
                                     MethodName{"cpo", HfTraining::alone},
                                     MethodName{"dpo", HfTraining::dpo},
                                     MethodName{"kto", HfTraining::kto},
                                     MethodName{"simpo", HfTraining::alone},
                                     MethodName{"reward", HfTraining::reward},
                                     MethodName{"prm", HfTraining::classify_tokens},
                                     MethodName{"sentencetransformer", HfTraining::embed},
                                     MethodName{"crossencoder", HfTraining::classify},
                                     MethodName{"run_mlm", HfTraining::mlm},
                                     MethodName{"run_glue", HfTraining::classify},
                                     MethodName{"run_classification", HfTraining::classify},
                                     MethodName{"run_ner", HfTraining::classify_tokens},
                                     MethodName{"sft", HfTraining::sft}};
constexpr std::array methods_not_read{"ppo", "gkd", "online", "nash", "xpo", "bco"};

[[noreturn]] void refuse_method(const SourceQuestion& question, int line, std::string_view key,
                                const std::string& said) {
  throw UserError({{question.file, line, std::string(key),
                    fmt::format("{} is not read yet; expected a training by sft, dpo, kto, orpo, "
                                "cpo, grpo, rloo or of a reward model (reward, prm)",
                                said)}});
}

std::string last_part(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

// Finds the method whose name it holds: "trl dpo", "DPOTrainer", "examples/scripts/dpo.py".
const MethodName* method_in(const std::string& name) {
  const std::string small = in_small_letters(last_part(name));
  const auto place = std::ranges::find_if(trainer_methods, [&](const MethodName& each) {
    return small.find(each.name) != std::string::npos;
  });
  return place == trainer_methods.end() ? nullptr : &*place;
}

void refuse_others(const SourceQuestion& question, const std::string& name) {
  const std::string small = in_small_letters(last_part(name));
  for (const char* other : methods_not_read)
    if (small.find(other) != std::string::npos)
      refuse_method(question, question.launch == nullptr ? 0 : question.launch->line, "", name);
}

// A folder that is called as the method, and no more.
const MethodName* method_of_folder(const std::string& file) {
  const std::string folder =
      in_small_letters(std::filesystem::path(file).parent_path().filename().string());
  const MethodName* method = method_in(folder);
  return method != nullptr && method->name == folder ? method : nullptr;
}

// Finds the method of a program of somebody's own: a folder above it has the method as a word of
// its name ("step2_reward_model_finetuning").
const MethodName* method_of_folders_above(const std::string& file) {
  std::filesystem::path folder = std::filesystem::path(file).parent_path();
  constexpr int most = 4;
  for (int up = 0; up < most && folder.has_filename(); ++up, folder = folder.parent_path()) {
    const std::string name = in_small_letters(folder.filename().string());
    for (std::size_t first = 0; first < name.size();) {
      const std::size_t end = std::min(name.find_first_of("_-", first), name.size());
      for (const MethodName& each : trainer_methods)
        if (name.substr(first, end - first) == each.name) return &each;
      first = end + 1;
    }
  }
  return nullptr;
}

// The method that a key, or the loss, of the source belongs to: told_by of the table.
struct ToldMethod {
  std::string method, key;
};
std::optional<ToldMethod> method_of_keys(const SourceQuestion& question, const Table& source) {
  const Document facts = import_facts(question.data, "programs/trl/trl");
  const Table known = facts.root().table("told_by");
  const std::string loss = source.has("loss_type") ? source.one_line("loss_type") : "";
  for (const std::string& method : known.keys()) {
    const Table told = known.table(method);
    for (const std::string& key : told.texts("keys"))
      if (source.has(key)) return ToldMethod{method, key};
    const std::vector<std::string> losses = told.texts_or("losses");
    if (std::ranges::any_of(losses, [&](const std::string& each) {
          return loss == each || loss == yaml_quoted(each);
        }))
      return ToldMethod{method, "loss_type"};
  }
  return std::nullopt;
}

// The trainer of transformers learns what the class of its model has a head for.
HfTraining training_of_class(const Table& source) {
  const std::string head = source.text_or("labels_of", "");
  return head == "texts"    ? HfTraining::classify
         : head == "tokens" ? HfTraining::classify_tokens
         : head == "words"  ? HfTraining::mlm
                            : HfTraining::sft;
}

// A trainer of transformers itself learns from rows.
bool is_plain_trainer(const std::string& program) {
  return program == "Trainer" || program == "Seq2SeqTrainer" || program == own_loop ||
         program == "SentenceTransformerTrainer" || program == "CrossEncoderTrainer" ||
         program.ends_with("(Trainer)") || program.ends_with("(Seq2SeqTrainer)");
}

}  // namespace

TrlMethod read_trl_method(const SourceQuestion& question, const Table& source,
                          std::vector<Assumption>& assumptions) {
  const auto decided = [](const MethodName& method, std::string key = "", bool plain = false) {
    return TrlMethod{method.training, std::move(key), plain, method.name == rloo};
  };
  const std::string set = said(question.settings, "job.method");
  if (const auto* method = set.empty() ? nullptr : method_in(set)) return decided(*method);
  if (question.known != nullptr) return {.plain = true};
  const std::string program = question.launch == nullptr ? std::string() : question.launch->program;
  const bool loop = program == own_loop;
  refuse_others(question, program.empty() || loop ? question.file : program);
  if (const auto* method = program.empty() ? nullptr : method_in(program))
    return decided(*method, "", method->name.starts_with("run_") || is_plain_trainer(program));
  if (const auto* method = loop ? method_in(question.file) : nullptr;
      method != nullptr && method->training != HfTraining::grpo)
    return decided(*method, "", true);
  if (is_plain_trainer(program) || (question.own_program && source.has("labels_of")))
    return {training_of_class(source), source.has("labels_of") ? "labels_of" : "", true};
  const auto assume = [&](std::string_view taken, std::string why) {
    assumptions.push_back({"method", std::string(taken), std::move(why),
                           fmt::format("--set job.method={}", taken == "sft" ? "dpo" : "sft")});
  };
  const MethodName* const of_file = method_in(question.file);
  const MethodName* const of_folder = question.own_program ? method_of_folders_above(question.file)
                                                           : method_of_folder(question.file);
  const auto named = [&](const MethodName& method, std::string key = "") {
    assume(method.name, fmt::format("the {} is called {}", of_file ? "file" : "folder",
                                    of_file ? last_part(question.file) : of_folder->name));
    const bool plain = question.own_program && method.training == HfTraining::sft && key.empty();
    return decided(method, std::move(key), plain);
  };
  if (of_file != nullptr) return named(*of_file);
  if (const auto told = method_of_keys(question, source)) {
    if (holds(methods_not_read, told->method))
      refuse_method(question, source.origin(told->key)->line, told->key, told->method);
    const MethodName& method = *method_in(told->method);
    // Pairs with a reference and without have the same keys.
    if (method.training == HfTraining::dpo && of_folder != nullptr &&
        of_folder->training == HfTraining::alone)
      return named(*of_folder, told->key);
    assume(method.name, fmt::format("by its key {}; the file does not name it", told->key));
    return decided(method, told->key);
  }
  if (of_folder != nullptr) return named(*of_folder);
  assume("sft", "the file does not say, and has no key of another trainer");
  return {.plain = question.own_program};
}

}  // namespace stepsim
