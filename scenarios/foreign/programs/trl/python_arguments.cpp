#include "scenarios/foreign/programs/trl/python_arguments.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"

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

// The call, told nothing but this.
PythonCall with_one(PythonCall call, const PythonCall::Keyword& keyword) {
  call.positional.clear();
  call.keywords = {keyword};
  return call;
}

// Returns what the model's class has a head of labels for; "": it has none.
std::string_view labels_of(const PythonCall& call) {
  const auto has = [&](std::string_view word) { return call.name.find(word) != std::string::npos; };
  return has("ForSequenceClassification") ? "texts"
         : has("ForTokenClassification")  ? "tokens"
         : has("ForMaskedLM")             ? "words"
                                          : "";
}

}  // namespace

std::string last_part_of(const std::string& name) {
  return name.substr(name.rfind('.') + 1);
}

const PythonTokens* keyword_of(const PythonCall& call, std::string_view name) {
  const auto place = std::ranges::find(call.keywords, name, &PythonCall::Keyword::name);
  return place == call.keywords.end() ? nullptr : &place->value;
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
    if (is_from_elsewhere(open[i])) continue;
    // A class of the program's own may have the name of one of TRL.
    const auto own = std::ranges::find(file_.classes, open[i], &PythonClass::name);
    const bool derives_from_same_name =
        own != file_.classes.end() && std::ranges::find(own->bases, open[i]) != own->bases.end();
    if (is_listed("trainers", open[i]) && (own == file_.classes.end() || derives_from_same_name))
      return open[i];
    if (const auto alias = file_.aliases.find(open[i]); alias != file_.aliases.end()) {
      if (is_listed("trainers", alias->second) && !is_from_elsewhere(alias->second))
        return alias->second;
      open.push_back(alias->second);
    }
    if (own != file_.classes.end()) open.insert(open.end(), own->bases.begin(), own->bases.end());
  }
  return "";
}

// Returns whether all that import the name take it from a package of somebody else.
bool PythonArguments::is_from_elsewhere(const std::string& name) const {
  bool imported = false;
  for (const PythonImport& each : file_.imports) {
    if (!holds(each.names, name)) continue;
    const std::string package = each.module.substr(0, each.module.find('.'));
    if (is_listed("libraries", package)) return false;
    imported = true;
  }
  return imported && !holds(file_.classes, name, &PythonClass::name);
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
  const bool derived = holds(file_.classes, name, &PythonClass::name) && !known_base(name).empty();
  return (derived || name.ends_with("Trainer")) && !is_lightning(call) &&
         !is_listed("no_trainers", name);
}

// A class of the program's own is one where it derives from one.
bool PythonArguments::is_settings(const std::string& name) const {
  std::vector<std::string> open{name};
  for (std::size_t i = 0; i < open.size() && i < 30; ++i) {
    const bool listed = is_listed("settings", open[i]) || open[i].ends_with("TrainingArguments");
    const auto own = std::ranges::find(file_.classes, open[i], &PythonClass::name);
    if (own == file_.classes.end() ? listed : listed && holds(own->bases, open[i])) return true;
    if (own != file_.classes.end()) open.insert(open.end(), own->bases.begin(), own->bases.end());
  }
  return false;
}

// Keeps, of several settings, those of the trainer that is taken: what its `args` are, else what
// stands in its function, else in its class.
void PythonArguments::keep_own_settings(std::vector<PythonCall>& calls) const {
  const auto trains = std::ranges::find_if(calls, [&](const PythonCall& call) {
    return is_trainer(call) && !known_base(last_part_of(call.name)).empty();
  });
  if (trains == calls.end()) return;
  const PythonCall trainer = *trains;
  const PythonScope& scope = file_.scopes[trainer.scope];
  const PythonTokens* said = keyword_of(trainer, "args");
  const auto is_said = [&](const PythonCall& call) {
    if (said == nullptr || call.scope != trainer.scope) return false;
    if (said->size() > 1) return call.from == trainer.from;
    return std::ranges::any_of(scope.assignments, [&](const PythonAssignment& each) {
      return each.line == call.from && holds(each.names, said->front().text);
    });
  };
  const auto is_near = [&](const PythonCall& call) { return call.scope == trainer.scope; };
  const auto is_of_class = [&](const PythonCall& call) {
    return !scope.of.empty() && file_.scopes[call.scope].of == scope.of;
  };
  const auto settle = [&](const auto& own) {
    const auto counts = [&](const PythonCall& call) {
      return is_settings(last_part_of(call.name)) && own(call);
    };
    if (std::ranges::none_of(calls, counts)) return false;
    std::erase_if(calls, [&](const PythonCall& call) {
      return is_settings(last_part_of(call.name)) && !own(call);
    });
    return true;
  };
  if (!settle(is_said) && !settle(is_near)) settle(is_of_class);
}

int PythonArguments::line_of(const PythonCall& call, int line) const {
  const auto module = program_.imported.find(file_.scopes[call.scope].module);
  return (module == program_.imported.end() ? line : module->second) + question_.first_line - 1;
}

// Finds the scopes that a run comes to, from the file itself on, by the names that they call.
void PythonArguments::find_live_scopes() {
  std::set<std::string> named;
  std::vector<bool>& live = live_;
  live.assign(file_.scopes.size(), false);
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
    for (const PythonStatement& statement : file_.scopes[scope].statements) {
      if (const auto runs = holds_at(file_, scope, statement.guard); runs && !*runs) continue;
      for (const PythonToken& token : statement.tokens)
        if (token.kind == PythonKind::name) named.insert(token.text);
    }
    for (const PythonClass& type : file_.classes)
      if (named.contains(type.name)) named.insert(type.bases.begin(), type.bases.end());
    // The call may be of a method of another class, or another module's function, of this name.
    const auto own_too = [&](const PythonScope& each) {
      return std::ranges::any_of(file_.scopes, [&](const PythonScope& other) {
        return other.module == 0 && other.of.empty() && other.name == each.name;
      });
    };
    for (std::size_t i = 0; i < file_.scopes.size(); ++i) {
      const PythonScope& each = file_.scopes[i];
      const bool called = named.contains(each.name);
      if (each.of.empty() ? called && (each.module == 0 || !own_too(each))
                          : named.contains(each.of) &&
                                (called || each.module == 0 || each.name.starts_with("__")))
        reach(i);
    }
  }
}

// Returns the calls that a run comes to: those of functions that nothing names stand last, and are
// left out of modules; those under a condition that does not hold are left out. Adapters are off
// where all that would put them on is left out.
std::vector<PythonCall> PythonArguments::live_calls() {
  find_live_scopes();
  std::vector<PythonCall> calls = calls_in(file_, [](const std::string&) { return true; });
  for (PythonCall& call : calls) {
    const std::string last = last_part_of(call.name);
    const auto alias = file_.aliases.find(last);
    if (alias != file_.aliases.end() && !holds(file_.classes, last, &PythonClass::name))
      call.name.replace(call.name.size() - last.size(), last.size(), alias->second);
  }
  const auto puts_adapters_on = [](const PythonCall& call) {
    const std::string last = last_part_of(call.name);
    return last == "get_peft_model" || last.starts_with("PeftModelFor") ||
           keyword_of(call, "peft_config") != nullptr;
  };
  adapters_off_ = std::ranges::any_of(calls, puts_adapters_on);
  std::erase_if(calls, [&](const PythonCall& call) {
    const auto runs = holds_at(file_, call.scope, call.guard);
    if (!call.only_if.empty()) {
      const PythonValue wanted = value_of(file_, place_of(call), call.only_if);
      if (wanted.kind == Kind::none || (wanted.kind == Kind::truth && wanted.number == 0))
        return true;
    }
    return (runs && !*runs) || (!live_[call.scope] && file_.scopes[call.scope].module != 0);
  });
  adapters_off_ = adapters_off_ && std::ranges::none_of(calls, puts_adapters_on);
  std::stable_partition(calls.begin(), calls.end(),
                        [&](const PythonCall& call) { return live_[call.scope]; });
  return calls;
}

void PythonArguments::add_calls() {
  std::vector<PythonCall> calls = live_calls();
  // Models come before trainers, which may name the same, and what writes before what judges it.
  std::stable_partition(calls.begin(), calls.end(),
                        [](const PythonCall& call) { return labels_of(call).empty(); });
  std::stable_partition(calls.begin(), calls.end(),
                        [&](const PythonCall& call) { return !is_trainer(call); });
  // A training that warms up stands before the one that learns from answers, and models of texts
  // that judge these are not trained.
  const auto answers = [&](const PythonCall& call) {
    const std::string base = known_base(last_part_of(call.name));
    return base == "GRPOTrainer" || base == "RLOOTrainer";
  };
  if (std::ranges::any_of(calls, answers)) {
    std::stable_partition(calls.begin(), calls.end(), [&](const PythonCall& call) {
      return !is_trainer(call) || answers(call);
    });
    std::erase_if(calls, [](const PythonCall& call) {
      const std::string name = last_part_of(call.name);
      return name == "SentenceTransformer" || name == "CrossEncoder";
    });
  }
  keep_own_settings(calls);
  // Such a loop goes through all layers, and takes what multiplies.
  finds_matrices_ = std::ranges::any_of(
      calls, [](const PythonCall& call) { return last_part_of(call.name) == "named_modules"; });
  for (const PythonCall& call : calls) add(call);
  const bool adapted = std::ranges::any_of(
      calls, [](const PythonCall& call) { return last_part_of(call.name) == "get_peft_model"; });
  put_text("prepares_for_kbit", adapted ? "false" : "trainer", trainer_line_);
  if (trainer_.empty()) add_fit(calls);
  if (trainer_.empty()) add_loop(calls);
  if (trainer_.empty() && unread_) throw UserError({*unread_});
  if (trainer_.empty()) return;
  // The trainer takes the optimizer that it is handed, whatever its settings say.
  for (const PythonCall& call : calls)
    if (handed_optimizer_ && words_.table("loop_optimizers").has(last_part_of(call.name)))
      add_optimizer(call);
  add_settings_classes();
  // Settings of transformers handed to a trainer of TRL keep their own defaults.
  if (of_transformers_ && known_.starts_with("SFT"))
    put_text("gradient_checkpointing", "false", trainer_line_);
  if (is_loop() || known_ == "Trainer" || known_ == "Seq2SeqTrainer") add_cut(calls);
  if (!seen_.contains("use_peft")) add_frozen();
}

void PythonArguments::add(const PythonCall& call) {
  const std::string name = last_part_of(call.name);
  if (name == "from_pretrained" || name == "SentenceTransformer" || name == "CrossEncoder")
    return add_model(call);
  if (name.starts_with("Cached") && name.ends_with("Loss")) {
    put_text("cached_loss", "true", line_of(call, call.line));
    return add_keywords(call, "");
  }
  if (name == "TripletLoss") return put_text("texts", "3", line_of(call, call.line));
  if (name == "LoraConfig" || name == "AdaLoraConfig" || name == "get_peft_model")
    return add_adapter(call);
  if (is_listed("other_adapters", name)) {
    if (adapters_off_) return;
    put_text("use_peft", "true", line_of(call, call.line));
    return put_text("other_adapter", yaml_quoted(name), line_of(call, call.line));
  }
  if (is_listed("checkpointing_calls", name)) {
    if (file_.scopes[call.scope].name == name) return;  // it hands on what another asks for
    const PythonTokens* said = keyword_of(call, "use_gradient_checkpointing");
    const bool off = said != nullptr && said->size() == 1 && said->front().text == "False";
    if (!off) put_text("checkpointing_enabled", "true", line_of(call, call.line));
    if (name.starts_with("prepare_model_for_")) {
      put_text("prepares_for_kbit", "true", line_of(call, call.line));
      if (holds_at(file_, call.scope, call.guard).value_or(false))
        put_text("casts_loaded", "true", line_of(call, call.line));
    }
    return;
  }
  if (name == "parse_json_file" || name == "parse_yaml_file") return add_parsed_file(call);
  // TRL's own defaults, of its ModelConfig.
  if (name == "get_peft_config" && question_.said.contains("use_peft") &&
      !holds(file_.scopes, name, &PythonScope::name)) {
    if (!question_.said.contains("lora_r")) put_text("lora_r", "16", line_of(call, call.line));
    return;
  }
  if (is_settings(name)) {
    settings_ = true;
    of_transformers_ = of_transformers_ || name.ends_with("TrainingArguments");
    return add_keywords(call, "");
  }
  if (name == "BitsAndBytesConfig") return add_keywords(call, "");
  if (is_trainer(call)) add_trainer(call);
}

// A file of arguments that a parser of transformers reads: args.rows and arguments of the trainer.
void PythonArguments::add_parsed_file(const PythonCall& call) {
  const PythonTokens* said = keyword_of(call, "json_file");
  if (said == nullptr) said = keyword_of(call, "yaml_file");
  if (said == nullptr && !call.positional.empty()) said = &call.positional.front();
  if (said == nullptr || !file_.settings_file) return;
  const PythonValue name = value_of(file_, place_of(call), *said);
  const auto settings =
      name.kind == Kind::text ? file_.settings_file(name.text) : std::optional<PythonValue>();
  if (!settings) return;
  settings_ = true;
  for (std::size_t i = 0; i < settings->keys.size() && i < settings->items.size(); ++i)
    if (counts(settings->keys[i]))
      put(settings->keys[i], settings->items[i], line_of(call, call.line));
}

bool PythonArguments::counts(const std::string& name) const {
  return question_.counts.empty() || holds(question_.counts, name);
}

void PythonArguments::put_text(const std::string& key, const std::string& yaml, int line) {
  if (seen_.insert(key).second) all_.push_back({key, yaml, line});
}

void PythonArguments::put(const std::string& key, const PythonValue& value, int line) {
  if (key == "deepspeed" && value.kind == Kind::table) return add_deepspeed(value, line);
  if (key == "model_init_kwargs" && value.kind == Kind::table) {
    for (std::size_t i = 0; i < value.keys.size() && i < value.items.size(); ++i)
      put(value.keys[i], value.items[i], line);
    return;
  }
  // Those that peft itself has for a kind of model are what it takes where none are said.
  if (value.kind == Kind::unknown && key == "lora_target_modules" &&
      value.text.find("TARGET_MODULES_MAPPING") != std::string::npos)
    return;
  if (!seen_.insert(key).second) return;  // the first of several models is the one that is trained
  // Wherever it is: a server of its own generates.
  if (value.kind == Kind::unknown && (key == "vllm_server_host" || key == "vllm_server_base_url"))
    return all_.push_back({key, "\"\"", line});
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
    add_items(call, keyword, front, {});
    const PythonValue table = value_of(file_, place_of(call), keyword.value);
    for (std::size_t i = 0; i < table.keys.size() && i < table.items.size(); ++i)
      put(named(table.keys[i]), table.items[i], line_of(call, keyword.line));
  }
}

// Adds to f(**settings) those that are set one by one: settings["dtype"] = ...
void PythonArguments::add_items(const PythonCall& call, const PythonCall::Keyword& keyword,
                                const std::string& front, const std::vector<std::string>& wanted) {
  if (keyword.value.size() != 1 || keyword.value[0].kind != PythonKind::name) return;
  const PythonToken& name = keyword.value[0];
  const std::string begin = name.text + ".";
  std::set<std::string> items;
  for (const PythonAssignment& each : file_.scopes[call.scope].assignments)
    if (each.names.size() == 1 && each.names[0].starts_with(begin) &&
        (wanted.empty() || holds(wanted, each.names[0].substr(begin.size()))) &&
        holds_at(file_, call.scope, each.guard).value_or(true))
      items.insert(each.names[0].substr(begin.size()));
  for (const std::string& item : items)
    add_value(item.starts_with(front) ? item : front + item,
              {name,
               {PythonKind::sign, "[", name.line},
               {PythonKind::text, item, name.line},
               {PythonKind::sign, "]", name.line}},
              call, keyword.line);
}

void PythonArguments::add_model(const PythonCall& call) {
  const bool fast = std::ranges::any_of(words_.texts("fast_models"), [&](const auto& name) {
    return call.name.find(name) != std::string::npos;
  });
  const bool causal = std::ranges::any_of(words_.texts("models"), [&](const auto& name) {
    return call.name.find(name) != std::string::npos;
  });
  // Adapters of an earlier run that are trained on: their rank stands beside them.
  if (!fast && !causal && call.name.find("PeftModel") != std::string::npos) {
    const PythonTokens* trained = keyword_of(call, "is_trainable");
    if (trained != nullptr && !trained->empty() && trained->front().text != "False")
      put_text("use_peft", "true", line_of(call, call.line));
    return;
  }
  const std::string_view labels = labels_of(call);
  const std::string name = last_part_of(call.name);
  const bool whole = name == "SentenceTransformer" || name == "CrossEncoder";
  if ((!fast && !causal && !whole && labels.empty()) || model_) return;
  model_ = true;
  for (const std::string_view word :
       {"ForConditionalGeneration", "ImageTextToText", "Vision", "ForMultimodalLM"})
    if (call.name.find(word) != std::string::npos)
      put_text("sees", "true", line_of(call, call.line));
  if (!labels.empty()) put_text("labels_of", yaml_quoted(labels), line_of(call, call.line));
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
      add_keywords(with_one(call, keyword), "");
  }
  // unsloth/models/loader.py: load_in_4bit = True, where no other way is said.
  const auto says = [&](const char* key) { return seen_.contains(key); };
  if (fast && !says("load_in_4bit") && !says("load_in_8bit") && !says("load_in_16bit") &&
      !says("load_in_fp8") && !says("full_finetuning"))
    put_text("load_in_4bit", "true", line_of(call, call.line));
  if (name == "CrossEncoder") put_text("num_labels", "1", line_of(call, call.line));
}

void PythonArguments::add_adapter(const PythonCall& call) {
  if (adapters_off_) return;
  put_text("use_peft", "true", line_of(call, call.line));
  for (const auto& keyword : call.keywords) {
    const std::string& name = keyword.name;
    if (name == "use_gradient_checkpointing")
      add_value(name, keyword.value, call, keyword.line);
    else if (name == "init_r" || name == "target_r")  // of AdaLora, which begins with the first
      add_value(name == "init_r" ? "lora_r" : "lora_target_r", keyword.value, call, keyword.line);
    else if (name.empty())
      add_keywords(with_one(call, keyword), "lora_");
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
  if (known.empty() && (defined || !settings_)) {
    const bool settings = std::ranges::any_of(
        file_.classes, [&](const PythonClass& type) { return is_settings(type.name); });
    if (defined || !settings) {  // the class may have a loop of its own
      if (!unread_)
        unread_ = {question_.file, line_of(call, call.line), "",
                   fmt::format("{} is no trainer of transformers or TRL, nor derived from one "
                               "here: what it does is not read",
                               name)};
      return;
    }
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
    if (keyword.name == "optimizers" && !seen_.contains("optim")) handed_optimizer_ = true;
    // Unsloth's own trainers take it whatever the release.
    if (keyword.name == "tokenizer" && !seen_.contains("unsloth"))
      put_text("trainer_tokenizer", "true", line_of(call, keyword.line));
    if (holds(own, keyword.name)) add_value(keyword.name, keyword.value, call, keyword.line);
    if (keyword.name.empty()) add_items(call, keyword, "", own);
  }
}

// Fields of classes that derive from the trainer's settings are arguments with defaults.
void PythonArguments::add_settings_classes() {
  for (const PythonClass& type : file_.classes) {
    if (!is_settings(type.name)) continue;
    for (const PythonAssignment& field : type.fields)
      for (const std::string& name : field.names) {
        if (field.value.empty() || question_.said.contains(name) || seen_.contains(name) ||
            !counts(name))
          continue;
        const PythonValue value = value_of(file_, {type.module, field.line, -1}, field.value);
        const auto yaml = yaml_of(value);
        if (yaml && value.kind != Kind::none)
          put_text(name, *yaml, (type.module == 0 ? field.line : 1) + question_.first_line - 1);
      }
  }
}

Arguments PythonArguments::finish() {
  return {document_in_lines(std::move(all_), question_.file), {}, std::move(unknown_)};
}

}  // namespace stepsim
