// This is the part of PythonArguments that reads loops of people's own, where these cut rows, and
// what they leave out of the training.
#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/foreign/programs/trl/python_arguments.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {

void PythonArguments::add_loop(const std::vector<PythonCall>& calls) {
  const auto calls_any = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::find_if(calls, [&](const PythonCall& call) {
      return std::ranges::find(names, last_part_of(call.name)) != names.end();
    });
  };
  const auto backward = calls_any({"backward"});
  if (const auto pipe = calls_any({"PipelineModule"}); pipe != calls.end())
    throw UserError({{question_.file, line_of(*pipe, pipe->line), "",
                      "cuts its model into stages of DeepSpeed's pipeline, and such programs are "
                      "not read: a file of Megatron or TorchTitan with the same model says "
                      "pipeline stages"}});
  const auto lightning =
      std::ranges::find_if(calls, [&](const PythonCall& call) { return is_lightning(call); });
  if (backward == calls.end() && lightning == calls.end()) return;
  const bool wraps = std::ranges::any_of(calls, [&](const PythonCall& call) {
    return is_listed("optimizers_of_loops", last_part_of(call.name)) ||
           words_.table("loop_optimizers").has(last_part_of(call.name)) ||
           last_part_of(call.name) == "initialize";
  });
  if (!wraps && lightning == calls.end()) return;
  if (backward != calls.end()) refuse_reinforcement(*backward);
  loop_ = true;
  trainer_ = own_loop;
  known_ = own_loop;
  trainer_line_ = backward != calls.end() ? line_of(*backward, backward->line)
                                          : line_of(*lightning, lightning->line);
  add_micro_batches(calls);
  for (const PythonCall& call : calls) {
    const std::string name = last_part_of(call.name);
    if (name == "DataLoader" || name == "StatefulDataLoader") add_loader(call);
    if (words_.table("loop_optimizers").has(name)) add_optimizer(call);
    if (name == "Accelerator" || name == "Fabric" || is_lightning(call)) add_lightning(call);
    if (name == "initialize" && call.name.find("deepspeed") != std::string::npos)
      add_deepspeed_of(call);
    if (const PythonTokens* again = keyword_of(call, "activation_checkpointing"))
      if (name == "FullyShardedDataParallelPlugin" &&
          value_of(file_, place_of(call), *again).number != 0)
        put_text("checkpointing_enabled", "true", line_of(call, call.line));
    if (name == "FullyShardedDataParallel" || name == "FSDP" || name == "fully_shard") {
      put_text("fsdp", "full_shard", line_of(call, call.line));
      put_text("shards_as_loaded", "true", line_of(call, call.line));
      shards_ = true;
    }
    if (name == "autocast" || name == "MixedPrecision" || name == "MixedPrecisionPolicy")
      add_autocast(call);
    if (call.name == "torch.compile" && !call.positional.empty())
      put_text("torch_compile", "true", line_of(call, call.line));
    if (name == "ScalingConfig")  // of Ray Train
      if (const PythonTokens* workers = keyword_of(call, "num_workers"))
        if (const PythonValue said = value_of(file_, place_of(call), *workers); said.number >= 1)
          devices_ = static_cast<std::int64_t>(said.number);
  }
  const PythonPlace step = backward == calls.end() ? PythonPlace{0, 0, -1} : place_of(*backward);
  add_named("per_device_train_batch_size", "rows_names", step);
  add_named("gradient_accumulation_steps", "accumulation_names", step);
  add_named("num_train_epochs", "epoch_names", step);
}

// Reads the settings that a loop hands to deepspeed.initialize.
void PythonArguments::add_deepspeed_of(const PythonCall& call) {
  for (const char* key : {"config", "config_params"})
    if (const PythonTokens* said = keyword_of(call, key)) {
      const PythonValue settings = value_of(file_, place_of(call), *said);
      const bool says = settings.kind == Kind::text;
      if (settings.kind == Kind::table)
        add_deepspeed(settings, line_of(call, call.line));
      else if (says || !question_.said.contains("deepspeed_config"))
        put("deepspeed_config", settings, line_of(call, call.line));
    }
}

// PyTorch's own way to multiply in 16 bits, of CUDA and of FSDP.
void PythonArguments::add_autocast(const PythonCall& call) {
  const PythonTokens* type = keyword_of(call, "dtype");
  if (type == nullptr) type = keyword_of(call, "param_dtype");
  const bool narrow = type != nullptr && !type->empty() &&
                      (type->back().text == "float16" || type->back().text == "half");
  put_text(narrow ? "fp16" : "bf16", "true", line_of(call, call.line));
}

// sentence_transformers/fit_mixin.py: model.fit(train_objectives=[(loader, loss)]) runs the
// trainer, in 32 bits unless use_amp is said.
void PythonArguments::add_fit(const std::vector<PythonCall>& calls) {
  const auto fit = std::ranges::find_if(calls, [](const PythonCall& call) {
    return last_part_of(call.name) == "fit" && (keyword_of(call, "train_objectives") != nullptr ||
                                                keyword_of(call, "train_dataloader") != nullptr);
  });
  if (fit == calls.end() || !model_) return;
  const bool pairs = keyword_of(*fit, "train_objectives") != nullptr;
  trainer_ = known_ = pairs ? "SentenceTransformerTrainer" : "CrossEncoderTrainer";
  trainer_line_ = line_of(*fit, fit->line);
  for (const PythonCall& call : calls)
    if (last_part_of(call.name) == "DataLoader") add_loader(call);
  for (const auto& [name, key] :
       {std::pair("epochs", "num_train_epochs"), std::pair("use_amp", "fp16")})
    if (const PythonTokens* said = keyword_of(*fit, name)) add_value(key, *said, *fit, fit->line);
}

// A loop that learns from answers of its own spends its time on these, which are not read out of
// it.
void PythonArguments::refuse_reinforcement(const PythonCall& backward) const {
  const PythonScope& scope = file_.scopes[backward.scope];
  const auto tells = [&](const std::string& text) {
    return std::ranges::any_of(words_.texts("reinforcement_words"), [&](const std::string& word) {
      return in_small_letters(text).find(word) != std::string::npos;
    });
  };
  const bool own = tells(scope.name) ||
                   std::ranges::any_of(scope.statements, [&](const PythonStatement& statement) {
                     return std::ranges::any_of(statement.tokens, [&](const PythonToken& token) {
                       return token.kind == PythonKind::name && tells(token.text);
                     });
                   });
  if (own)
    throw UserError({{question_.file, line_of(backward, backward.line), "",
                      "is a loop of its own that learns from answers which it generates, and these "
                      "are not read; GRPO of TRL, verl, OpenRLHF, NeMo-RL, ms-swift, slime and "
                      "open-instruct is"}});
}

// Takes what a variable of one of these names says, or an argument. Those of a step a run looks at.
void PythonArguments::add_named(const std::string& key, std::string_view names,
                                const PythonPlace& step) {
  const auto is_used = [&](const std::string& name) {
    for (std::size_t scope = 0; scope < file_.scopes.size(); ++scope)
      for (const PythonStatement& statement : file_.scopes[scope].statements)
        for (std::size_t i = 1; live_[scope] && i < statement.tokens.size(); ++i)
          if (is_name(statement.tokens[i], name)) return true;
    return question_.said.contains(name);
  };
  for (const std::string& name : words_.texts(names)) {
    if (key != "num_train_epochs" && !is_used(name)) continue;
    const PythonValue value = value_of(
        file_, {0, 0, -1},
        {{PythonKind::name, "args", 0}, {PythonKind::sign, ".", 0}, {PythonKind::name, name, 0}});
    const PythonValue plain = value_of(file_, {0, 0, -1}, {{PythonKind::name, name, 0}}),
                      told = value_of(file_, step, {{PythonKind::name, name, 0}});
    for (const PythonValue* each : {&value, &plain, &told})
      if (each->kind == Kind::number) put(key, *each, trainer_line_);
  }
}

// Rows of the loader that a step splits: how many parts that makes hangs on the ranks too, which
// the program counts as it runs.
void PythonArguments::add_micro_batches(const std::vector<PythonCall>& calls) {
  for (const PythonCall& call : calls) {
    if (last_part_of(call.name) != "split" || call.positional.empty()) continue;
    const PythonTokens& rows = call.positional.front();
    if (std::ranges::none_of(rows, [](const PythonToken& token) {
          return in_small_letters(token.text).find("micro") != std::string::npos;
        }))
      continue;
    const int line = line_of(call, call.line);
    add_value("per_device_train_batch_size", rows, call, call.line);
    if (seen_.insert("gradient_accumulation_steps").second)
      unknown_.push_back({"gradient_accumulation_steps",
                          {"", line, "how many micro-batches a step is split into",
                           "gradient_accumulation_steps"}});
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
  // DataLoader(data, **settings)
  const auto settings = std::ranges::find(call.keywords, "", &PythonCall::Keyword::name);
  const PythonValue table = settings == call.keywords.end()
                                ? PythonValue{}
                                : value_of(file_, place_of(call), settings->value);
  if (const PythonTokens* rows = keyword_of(call, "batch_size"))
    add_value("per_device_train_batch_size", *rows, call, call.line);
  else if (const PythonValue* rows_there = table.at("batch_size"))
    put("per_device_train_batch_size", *rows_there, line_of(call, call.line));
  else if (settings != call.keywords.end() && table.kind == Kind::unknown)
    put("per_device_train_batch_size", table, line_of(call, call.line));
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

// Returns what functions of the program itself are told: prepare(data, max_length=2048).
PythonValue PythonArguments::longest_told(const std::vector<PythonCall>& calls, int& line) const {
  const std::vector<std::string> names = words_.texts("length_names");
  const auto is_own = [&](const std::string& name) {
    return holds(file_.scopes, name, &PythonScope::name) ||
           holds(file_.classes, name, &PythonClass::name) ||
           std::ranges::any_of(file_.imports, [&](const PythonImport& each) {
             return !each.module.starts_with("transformers") && holds(each.names, name);
           });
  };
  for (const PythonCall& call : calls) {
    if (!is_own(call.name)) continue;
    for (const auto& keyword : call.keywords) {
      if (!holds(names, in_small_letters(keyword.name))) continue;
      PythonValue value = value_of(file_, place_of(call), keyword.value);
      if (value.kind != Kind::number || value.number < 1 || value.number > 1e7) continue;
      line = line_of(call, keyword.line);
      return value;
    }
  }
  return {};
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
  for (const PythonCall& call : calls)
    if (const PythonTokens* own = keyword_of(call, "model_max_length"))
      if (longest.kind != Kind::number && call.name.find("Tokenizer") != std::string::npos)
        take(value_of(file_, place_of(call), *own), line_of(call, call.line));
  if (longest.kind != Kind::number) longest = longest_told(calls, line);
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

// Finds where parameters are taken out of the training one by one, without adapters:
// `p.requires_grad = False` in a loop over those of the model, or `model.requires_grad_(False)`.
// Other models that a program has beside it are frozen as a rule.
void PythonArguments::add_frozen() {
  const std::vector<std::string> others = words_.texts("frozen_as_a_rule");
  const auto is_other = [&](const PythonTokens& tokens) {
    return std::ranges::any_of(tokens, [&](const PythonToken& token) {
      const std::string small = in_small_letters(token.text);
      return std::ranges::any_of(
          others, [&](const std::string& word) { return small.find(word) != std::string::npos; });
    });
  };
  for (std::size_t scope = 0; scope < file_.scopes.size(); ++scope) {
    if (!live_[scope] && file_.scopes[scope].module != 0) continue;
    const PythonTokens* loop = nullptr;
    for (const PythonStatement& statement : file_.scopes[scope].statements) {
      const PythonTokens& tokens = statement.tokens;
      if (tokens.empty()) continue;
      if (is_name(tokens.front(), "for")) loop = &tokens;
      const std::size_t size = tokens.size();
      const bool one = size > 3 && tokens[size - 3].text == "requires_grad" &&
                       is_sign(tokens[size - 2], "=") && is_name(tokens.back(), "False");
      const bool all = size > 4 && tokens[size - 4].text == "requires_grad_" &&
                       is_name(tokens[size - 2], "False");
      if ((!one && !all) || (one && loop == nullptr) || is_other(one ? *loop : tokens)) continue;
      const int guard = statement.guard;
      if (guard >= 0 && is_other(file_.guards[static_cast<std::size_t>(guard)].condition)) continue;
      if (const auto runs = holds_at(file_, scope, guard); runs && !*runs) continue;
      return put_text("frozen_parameters", "true", tokens.front().line + question_.first_line - 1);
    }
  }
}

}  // namespace stepsim
