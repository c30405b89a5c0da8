#include "scenarios/foreign/programs/trl/python_arguments.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/yaml_text.hpp"

namespace stepsim {
namespace {

using Kind = PythonValue::Kind;

// Returns a value as YAML; nothing where YAML cannot say it here.
std::optional<std::string> yaml_of(const PythonValue& value) {
  switch (value.kind) {
    case Kind::none:
      return "null";
    case Kind::truth:
      return value.number != 0 ? "true" : "false";
    case Kind::number:
      return value.whole ? fmt::format("{:.0f}", value.number) : fmt::format("{}", value.number);
    case Kind::text: {
      if (std::any_of(value.text.begin(), value.text.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20; }))
        return std::nullopt;
      return yaml_quoted(value.text);
    }
    case Kind::list:
    case Kind::table: {
      const bool table = value.kind == Kind::table;
      std::vector<std::string> items;
      for (std::size_t i = 0; i < value.items.size(); ++i) {
        const auto item = yaml_of(value.items[i]);
        if (!item || (table && i >= value.keys.size())) return std::nullopt;
        items.push_back(table ? fmt::format("{}: {}", yaml_quoted(value.keys[i]), *item) : *item);
      }
      return fmt::format(fmt::runtime(table ? "{{{}}}" : "[{}]"), fmt::join(items, ", "));
    }
    case Kind::object:
    case Kind::unknown:
      return std::nullopt;
  }
  return std::nullopt;
}

const PythonTokens* keyword_of(const PythonCall& call, std::string_view name) {
  const auto place = std::ranges::find(call.keywords, name, &PythonCall::Keyword::name);
  return place == call.keywords.end() ? nullptr : &place->value;
}

}  // namespace

std::string last_part_of(const std::string& name) {
  return name.substr(name.rfind('.') + 1);
}

PythonArguments::PythonArguments(const PythonProgram& program, const PythonQuestion& question,
                                 Table words)
    : program_(program), file_(program.file), question_(question), words_(std::move(words)) {}

bool PythonArguments::is_listed(std::string_view list, const std::string& name) const {
  return holds(words_.texts(list), name);
}

// ---- calls ----

// Follows the classes of the files; "" where none of these derives from a trainer that is known.
std::string PythonArguments::known_base(const std::string& name) const {
  std::vector<std::string> open{name};
  for (std::size_t i = 0; i < open.size() && i < 30; ++i) {
    if (is_listed("trainers", open[i])) return open[i];
    if (const auto alias = file_.aliases.find(open[i]); alias != file_.aliases.end())
      open.push_back(alias->second);
    for (const PythonClass& type : file_.classes)
      if (type.name == open[i]) open.insert(open.end(), type.bases.begin(), type.bases.end());
  }
  return "";
}

bool PythonArguments::is_lightning(const PythonCall& call) const {
  const std::string front = call.name.substr(0, call.name.find('.'));
  const bool named = front == "pl" || front == "L" || front == "lightning" ||
                     front == "pytorch_lightning" || front == "lit";
  const bool told = std::ranges::any_of(call.keywords, [&](const auto& keyword) {
    return is_listed("lightning_keywords", keyword.name);
  });
  return last_part_of(call.name) == "Trainer" &&
         (told || (named && call.name.find('.') != std::string::npos));
}

bool PythonArguments::is_trainer(const PythonCall& call) const {
  const std::string name = last_part_of(call.name);
  return name.ends_with("Trainer") && !is_lightning(call) && !is_listed("no_trainers", name);
}

int PythonArguments::line_of(const PythonCall& call, int line) const {
  const auto module = program_.imported.find(file_.scopes[call.scope].module);
  return (module == program_.imported.end() ? line : module->second) + question_.first_line - 1;
}

// Returns the calls that a run comes to: those of functions that nothing names stand last, and are
// left out of modules; those under a condition that does not hold are left out.
std::vector<PythonCall> PythonArguments::live_calls() const {
  std::set<std::string> named;
  std::vector<bool> live(file_.scopes.size(), false);
  std::vector<std::size_t> open;
  const auto reach = [&](std::size_t scope) {
    if (live[scope]) return;
    live[scope] = true;
    open.push_back(scope);
  };
  for (std::size_t i = 0; i < file_.scopes.size(); ++i)
    if (file_.scopes[i].module == i || !file_.scopes[i].decorators.empty()) reach(i);
  while (!open.empty()) {
    const std::size_t scope = open.back();
    open.pop_back();
    for (const PythonStatement& statement : file_.scopes[scope].statements)
      for (const PythonToken& token : statement.tokens)
        if (token.kind == PythonKind::name) named.insert(token.text);
    for (std::size_t i = 0; i < file_.scopes.size(); ++i) {
      const PythonScope& each = file_.scopes[i];
      if (named.contains(each.name) || (!each.of.empty() && named.contains(each.of) &&
                                        (each.name.starts_with("__") || each.module == 0)))
        reach(i);
    }
  }
  std::vector<PythonCall> calls = calls_in(file_, [](const std::string&) { return true; });
  std::erase_if(calls, [&](const PythonCall& call) {
    const auto runs = holds_at(file_, call.scope, call.guard);
    if (!call.only_if.empty()) {
      const PythonValue wanted = value_of(file_, place_of(call), call.only_if);
      if (wanted.kind == Kind::none || (wanted.kind == Kind::truth && wanted.number == 0))
        return true;
    }
    return (runs && !*runs) || (!live[call.scope] && file_.scopes[call.scope].module != 0);
  });
  std::stable_partition(calls.begin(), calls.end(),
                        [&](const PythonCall& call) { return live[call.scope]; });
  return calls;
}

void PythonArguments::add_calls() {
  std::vector<PythonCall> calls = live_calls();
  // Models come before trainers, which may name the same.
  std::stable_partition(calls.begin(), calls.end(),
                        [&](const PythonCall& call) { return !is_trainer(call); });
  // Such a loop goes through all layers, and takes what multiplies.
  finds_matrices_ = std::ranges::any_of(
      calls, [](const PythonCall& call) { return last_part_of(call.name) == "named_modules"; });
  rewards_ = std::ranges::any_of(calls, [&](const PythonCall& call) {
    return last_part_of(call.name).ends_with("RewardTrainer");
  });
  for (const PythonCall& call : calls) add(call);
  if (trainer_.empty()) add_loop(calls);
  if (trainer_.empty()) return;
  add_settings_classes();
  // Settings of transformers handed to a trainer of TRL keep their own defaults.
  if (of_transformers_ && known_.starts_with("SFT"))
    put_text("gradient_checkpointing", "false", trainer_line_);
  if (is_loop() || known_ == "Trainer" || known_ == "Seq2SeqTrainer") add_cut(calls);
}

void PythonArguments::add(const PythonCall& call) {
  const std::string name = last_part_of(call.name);
  if (name == "from_pretrained") return add_model(call);
  if (name == "LoraConfig" || name == "AdaLoraConfig" || name == "get_peft_model")
    return add_adapter(call);
  if (is_listed("other_adapters", name)) {
    put_text("use_peft", "true", line_of(call, call.line));
    return put_text("other_adapter", yaml_quoted(name), line_of(call, call.line));
  }
  if (is_listed("checkpointing_calls", name)) {
    const PythonTokens* said = keyword_of(call, "use_gradient_checkpointing");
    const bool off = said != nullptr && said->size() == 1 && said->front().text == "False";
    if (!off) put_text("checkpointing_enabled", "true", line_of(call, call.line));
    return;
  }
  if (is_listed("settings", name) || name.ends_with("TrainingArguments")) {
    settings_ = true;
    of_transformers_ = of_transformers_ || name.ends_with("TrainingArguments");
    return add_keywords(call, "");
  }
  if (name == "BitsAndBytesConfig") return add_keywords(call, "");
  if (is_trainer(call)) add_trainer(call);
}

void PythonArguments::put_text(const std::string& key, const std::string& yaml, int line) {
  if (seen_.insert(key).second) all_.push_back({key, yaml, line});
}

void PythonArguments::put(const std::string& key, const PythonValue& value, int line) {
  if (key == "deepspeed" && value.kind == Kind::table) return add_deepspeed(value, line);
  if (!seen_.insert(key).second) return;  // the first of several models is the one that is trained
  if (value.kind == Kind::unknown && key == "lora_target_modules" && finds_matrices_) {
    all_.push_back({key, "\"all-linear\"", line});
    all_.push_back({"matrices_found", "true", line});
  } else if (value.kind == Kind::unknown)
    unknown_.push_back({key, {"", line, value.text, value.variable}});
  else if (const auto yaml = yaml_of(value))
    all_.push_back({key, *yaml, line});
}

void PythonArguments::add_value(const std::string& key, const PythonTokens& tokens,
                                const PythonCall& call, int line) {
  if (!seen_.contains(key)) put(key, value_of(file_, place_of(call), tokens), line_of(call, line));
}

// An adapter's names are the command line's with this in front: "r" as "lora_r".
void PythonArguments::add_keywords(const PythonCall& call, const std::string& front) {
  const auto named = [&](const std::string& name) {
    return name.starts_with(front) ? name : front + name;
  };
  for (const auto& keyword : call.keywords) {
    if (!keyword.name.empty()) {
      add_value(named(keyword.name), keyword.value, call, keyword.line);
      continue;
    }
    const PythonValue table = value_of(file_, place_of(call), keyword.value);
    for (std::size_t i = 0; i < table.keys.size() && i < table.items.size(); ++i)
      put(named(table.keys[i]), table.items[i], line_of(call, keyword.line));
  }
}

void PythonArguments::add_model(const PythonCall& call) {
  const bool fast = std::ranges::any_of(words_.texts("fast_models"), [&](const auto& name) {
    return call.name.find(name) != std::string::npos;
  });
  const bool causal = std::ranges::any_of(words_.texts("models"), [&](const auto& name) {
    return call.name.find(name) != std::string::npos;
  });
  const bool reward = rewards_ && call.name.find("ForSequenceClassification") != std::string::npos;
  if ((!fast && !causal && !reward) || model_) return;
  model_ = true;
  if (fast)
    put_text("unsloth",
             call.name.find("FastLanguageModel") == std::string::npos ? "\"all\"" : "true",
             line_of(call, call.line));
  if (!call.positional.empty())
    add_value("model_name_or_path", call.positional.front(), call, call.line);
  for (const auto& keyword : call.keywords) {
    const bool names_it =
        keyword.name == "pretrained_model_name_or_path" || keyword.name == "model_name";
    if (!keyword.name.empty())
      add_value(names_it ? "model_name_or_path" : keyword.name, keyword.value, call, keyword.line);
    else
      add_keywords({.name = call.name,
                    .line = call.line,
                    .positional = {},
                    .keywords = {keyword},
                    .scope = call.scope,
                    .from = call.from,
                    .guard = call.guard},
                   "");
  }
}

void PythonArguments::add_adapter(const PythonCall& call) {
  put_text("use_peft", "true", line_of(call, call.line));
  for (const auto& keyword : call.keywords) {
    const std::string& name = keyword.name;
    if (name == "use_gradient_checkpointing")
      add_value(name, keyword.value, call, keyword.line);
    else if (name == "init_r" || name == "target_r")  // of AdaLora, which begins with the first
      add_value(name == "init_r" ? "lora_r" : "lora_target_r", keyword.value, call, keyword.line);
    else if (name.empty())
      add_keywords({.name = call.name,
                    .line = call.line,
                    .positional = {},
                    .keywords = {keyword},
                    .scope = call.scope,
                    .from = call.from,
                    .guard = call.guard},
                   "lora_");
    else if (name != "max_seq_length" && name != "random_state")  // of unsloth, said elsewhere too
      add_value(name.starts_with("lora_") ? name : "lora_" + name, keyword.value, call,
                keyword.line);
  }
}

void PythonArguments::add_trainer(const PythonCall& call) {
  if (!trainer_.empty()) return;
  const std::string name = last_part_of(call.name);
  const std::string known = known_base(name);
  const bool defined = holds(file_.classes, name, &PythonClass::name);
  if (known.empty() && (defined || !settings_) && !is_listed("trainers", name)) {
    const bool settings = std::ranges::any_of(file_.classes, [&](const PythonClass& type) {
      return std::ranges::any_of(type.bases, [&](const std::string& base) {
        return base.ends_with("TrainingArguments") || is_listed("settings", base);
      });
    });
    if (defined || !settings)
      throw UserError({{question_.file, line_of(call, call.line), "",
                        fmt::format("{} is no trainer of transformers or TRL, nor derived from one "
                                    "here: what it does is not read",
                                    name)}});
  }
  trainer_ = name;
  known_ = known.empty() ? "Trainer" : known;
  if (known.empty()) put_text("unknown_trainer", yaml_quoted(name), line_of(call, call.line));
  trainer_line_ = line_of(call, call.line);
  // A model by its name, and what older releases took here.
  const std::vector<std::string> own = words_.texts("trainer_keywords");
  const auto add_named = [&](const PythonTokens& tokens, int line) {
    if (!model_ && value_of(file_, place_of(call), tokens).kind == Kind::text)
      add_value("model_name_or_path", tokens, call, line);
  };
  if (!call.positional.empty()) add_named(call.positional.front(), call.line);
  for (const auto& keyword : call.keywords) {
    if (keyword.name == "model") add_named(keyword.value, keyword.line);
    if (holds(own, keyword.name)) add_value(keyword.name, keyword.value, call, keyword.line);
  }
}

// Fields of classes that derive from the trainer's settings are arguments with defaults.
void PythonArguments::add_settings_classes() {
  for (const PythonClass& type : file_.classes) {
    const bool settings = std::ranges::any_of(type.bases, [&](const std::string& base) {
      return base.ends_with("TrainingArguments") || is_listed("settings", base);
    });
    if (!settings) continue;
    for (const PythonAssignment& field : type.fields)
      for (const std::string& name : field.names) {
        if (field.value.empty() || question_.said.contains(name) || seen_.contains(name)) continue;
        const PythonValue value = value_of(file_, {type.module, field.line, -1}, field.value);
        const auto yaml = yaml_of(value);
        if (yaml && value.kind != Kind::none)
          put_text(name, *yaml, (type.module == 0 ? field.line : 1) + question_.first_line - 1);
      }
  }
}

// ---- loops of people's own ----

void PythonArguments::add_loop(const std::vector<PythonCall>& calls) {
  const auto calls_any = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::find_if(calls, [&](const PythonCall& call) {
      return std::ranges::find(names, last_part_of(call.name)) != names.end();
    });
  };
  const auto backward = calls_any({"backward"});
  const auto lightning =
      std::ranges::find_if(calls, [&](const PythonCall& call) { return is_lightning(call); });
  if (backward == calls.end() && lightning == calls.end()) return;
  const bool wraps = std::ranges::any_of(calls, [&](const PythonCall& call) {
    return is_listed("optimizers_of_loops", last_part_of(call.name)) ||
           words_.table("loop_optimizers").has(last_part_of(call.name)) ||
           last_part_of(call.name) == "initialize";
  });
  if (!wraps && lightning == calls.end()) return;
  loop_ = true;
  trainer_ = own_loop;
  known_ = own_loop;
  trainer_line_ = backward != calls.end() ? line_of(*backward, backward->line)
                                          : line_of(*lightning, lightning->line);
  for (const PythonCall& call : calls) {
    const std::string name = last_part_of(call.name);
    if (name == "DataLoader" || name == "StatefulDataLoader") add_loader(call);
    if (words_.table("loop_optimizers").has(name)) add_optimizer(call);
    if (name == "Accelerator" || name == "Fabric" || is_lightning(call)) add_lightning(call);
    if (name == "initialize" && call.name.find("deepspeed") != std::string::npos)
      for (const char* key : {"config", "config_params"})
        if (const PythonTokens* said = keyword_of(call, key)) {
          const PythonValue settings = value_of(file_, place_of(call), *said);
          const bool says = settings.kind == Kind::text;
          if (settings.kind == Kind::table)
            add_deepspeed(settings, line_of(call, call.line));
          else if (says || !question_.said.contains("deepspeed_config"))
            put("deepspeed_config", settings, line_of(call, call.line));
        }
    if (name == "FullyShardedDataParallel" || name == "FSDP" || name == "fully_shard")
      put_text("fsdp", "full_shard", line_of(call, call.line));
    if (name == "autocast") put_text("bf16", "true", line_of(call, call.line));
  }
  // Accumulation that a variable says.
  for (const std::string& name : words_.texts("accumulation_names")) {
    const PythonValue value = value_of(
        file_, {0, 0, -1},
        {{PythonKind::name, "args", 0}, {PythonKind::sign, ".", 0}, {PythonKind::name, name, 0}});
    const PythonValue plain = value_of(file_, {0, 0, -1}, {{PythonKind::name, name, 0}});
    for (const PythonValue* each : {&value, &plain})
      if (each->kind == Kind::number) put("gradient_accumulation_steps", *each, trainer_line_);
  }
}

void PythonArguments::add_optimizer(const PythonCall& call) {
  if (seen_.contains("optim")) return;
  const std::string name = last_part_of(call.name);
  std::string word = words_.table("loop_optimizers").text(name);
  const PythonTokens* fused = keyword_of(call, "fused");
  if (word == "adamw_torch" && fused != nullptr && !fused->empty() && fused->front().text == "True")
    word = "adamw_torch_fused";
  put_text("optim", word, line_of(call, call.line));
}

void PythonArguments::add_loader(const PythonCall& call) {
  const auto has = [&](std::string_view word) {
    return std::ranges::any_of(call.positional, [&](const PythonTokens& tokens) {
      return std::ranges::any_of(tokens, [&](const PythonToken& token) {
        return in_small_letters(token.text).find(word) != std::string::npos;
      });
    });
  };
  if (has("eval") || has("val_") || has("valid") || has("test")) return;
  if (const PythonTokens* rows = keyword_of(call, "batch_size"))
    add_value("per_device_train_batch_size", *rows, call, call.line);
  else if (call.positional.size() > 1)
    add_value("per_device_train_batch_size", call.positional[1], call, call.line);
  else
    put_text("per_device_train_batch_size", "1", line_of(call, call.line));
}

// Accelerate, Fabric and Lightning are told alike.
void PythonArguments::add_lightning(const PythonCall& call) {
  for (const auto& keyword : call.keywords) {
    const PythonValue value = value_of(file_, place_of(call), keyword.value);
    const int line = line_of(call, keyword.line);
    if (keyword.name == "gradient_accumulation_steps" || keyword.name == "accumulate_grad_batches")
      put("gradient_accumulation_steps", value, line);
    if (keyword.name == "max_steps" || keyword.name == "max_epochs")
      put(keyword.name == "max_steps" ? "max_steps" : "num_train_epochs", value, line);
    if ((keyword.name == "mixed_precision" || keyword.name == "precision") &&
        value.kind == Kind::text) {
      const bool half = value.text.find("16") != std::string::npos;
      const bool narrow = value.text.starts_with("16") || value.text.starts_with("fp16");
      if (half) put_text(narrow ? "fp16" : "bf16", "true", line);
      if (value.text == "bf16-true" || value.text == "16-true")
        put_text("torch_dtype", "bfloat16", line);
    }
    if (keyword.name == "devices" && value.kind == Kind::number && value.number >= 1)
      devices_ = static_cast<std::int64_t>(value.number);
    if (keyword.name == "strategy" && value.kind == Kind::text) {
      const std::string& said = value.text;
      if (said.starts_with("fsdp")) put_text("fsdp", "full_shard", line);
      if (said.starts_with("deepspeed")) {
        put_text("deepspeed", "true", line);
        put_text("zero_stage",
                 said.find("_1") != std::string::npos   ? "1"
                 : said.find("_3") != std::string::npos ? "3"
                                                        : "2",
                 line);
        if (said.find("offload") != std::string::npos) put_text("offload", "true", line);
      }
    }
  }
}

// DeepSpeed's settings as a dictionary of the file.
void PythonArguments::add_deepspeed(const PythonValue& settings, int line) {
  put_text("deepspeed", "true", line);
  const auto rows = settings.at("train_micro_batch_size_per_gpu");
  if (rows != nullptr && rows->kind == Kind::number && is_loop())
    put("per_device_train_batch_size", *rows, line);
  const auto batches = settings.at("gradient_accumulation_steps");
  if (batches != nullptr && batches->kind == Kind::number && is_loop())
    put("gradient_accumulation_steps", *batches, line);
  const PythonValue* zero = settings.at("zero_optimization");
  if (zero == nullptr) return;
  if (const PythonValue* stage = zero->at("stage")) put("zero_stage", *stage, line);
  for (const char* key : {"offload_optimizer", "offload_param"})
    if (const PythonValue* block = zero->at(key))
      if (const PythonValue* device = block->at("device");
          device != nullptr && device->text == "cpu")
        put_text("offload", "true", line);
}

// Finds where the program itself cuts its rows: by what its tokenizer is told, else by a name.
void PythonArguments::add_cut(const std::vector<PythonCall>& calls) {
  for (const char* key : {"max_length", "max_seq_length", "model_max_length"})
    if (seen_.contains(key) || question_.said.contains(key)) return;
  const std::vector<std::string> names = words_.texts("length_names");
  PythonValue longest;
  int line = 0;
  const auto take = [&](const PythonValue& value, int at) {
    if (value.kind != Kind::number || value.number < 1 || value.number > 1e7) return;
    if (longest.kind == Kind::number && longest.number >= value.number) return;
    longest = value;
    line = at;
  };
  for (const PythonCall& call : calls) {
    const PythonTokens* cut = keyword_of(call, "max_length");
    if (cut == nullptr || keyword_of(call, "truncation") == nullptr) continue;
    take(value_of(file_, place_of(call), *cut), line_of(call, call.line));
  }
  for (std::size_t i = 0; i < file_.scopes.size() && longest.kind != Kind::number; ++i)
    for (const PythonAssignment& each : file_.scopes[i].assignments)
      if (each.names.size() == 1 && holds(names, in_small_letters(last_part_of(each.names[0]))))
        take(value_of(file_, {i, each.line, each.guard}, each.value),
             each.line + question_.first_line - 1);
  if (longest.kind != Kind::number)
    for (const auto& [name, tokens] : file_.arguments)
      if (holds(names, in_small_letters(name)) && !tokens.empty()) {
        const auto said = question_.said.find(name);
        take(value_of(file_, {},
                      said == question_.said.end()
                          ? tokens
                          : PythonTokens{{PythonKind::number, said->second, 1}}),
             tokens.front().line + question_.first_line - 1);
      }
  // Inputs and outputs may be cut each by itself.
  const auto argument = [&](const char* name) {
    const auto place = file_.arguments.find(name);
    if (const auto said = question_.said.find(name); said != question_.said.end())
      return value_of(file_, {}, {{PythonKind::number, said->second, 1}});
    return place == file_.arguments.end() || place->second.empty()
               ? PythonValue{}
               : value_of(file_, {}, place->second);
  };
  for (const auto& [in, out] : {std::pair("source_max_len", "target_max_len"),
                                std::pair("max_source_length", "max_target_length")}) {
    PythonValue both = argument(in);
    const PythonValue more = argument(out);
    if (both.kind != Kind::number || more.kind != Kind::number) continue;
    both.number += more.number;
    take(both, trainer_line_);
  }
  if (longest.kind == Kind::number) put("max_length", longest, line);
}

Arguments PythonArguments::finish() {
  return {document_in_lines(std::move(all_), question_.file), {}, std::move(unknown_)};
}

}  // namespace stepsim
