#include "scenarios/foreign/programs/trl/python_source.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "scenarios/foreign/programs/accelerate/accelerate.hpp"
#include "scenarios/foreign/table/translation.hpp"
#include "scenarios/foreign/text/python_values.hpp"

namespace stepsim {
namespace {

using Kind = PythonValue::Kind;

std::string last_name(const std::string& name) {
  return name.substr(name.rfind('.') + 1);
}

bool is_trainer(const std::string& name) {
  return name.ends_with("Trainer") && name != "Trainer" ? name.size() > 8 : name == "Trainer";
}
bool is_settings(const std::string& name) {
  constexpr std::array settings{"SFTConfig",  "DPOConfig",    "KTOConfig",
                                "GRPOConfig", "RewardConfig", "ORPOConfig",
                                "CPOConfig",  "RLOOConfig",   "TrainingArguments"};
  return std::any_of(settings.begin(), settings.end(),
                     [&](const char* each) { return name == each; }) ||
         name.ends_with("TrainingArguments");
}
bool is_wanted(const std::string& name) {
  return is_trainer(name) || is_settings(name) || name == "LoraConfig" ||
         name == "BitsAndBytesConfig" || name == "from_pretrained" || name == "get_peft_model";
}

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
    case Kind::list: {
      std::vector<std::string> items;
      for (const PythonValue& each : value.items) {
        const auto item = yaml_of(each);
        if (!item) return std::nullopt;
        items.push_back(*item);
      }
      return fmt::format("[{}]", fmt::join(items, ", "));
    }
    case Kind::unknown:
      return std::nullopt;
  }
  return std::nullopt;
}

// Puts what constructors are told together under the names that the command line has for it.
class Collector {
 public:
  Collector(const PythonFile& file, const PythonQuestion& question)
      : file_(file), question_(question) {}

  void add(const PythonCall& call) {
    const std::string name = last_name(call.name);
    if (name == "from_pretrained")
      add_model(call);
    else if (name == "LoraConfig" || name == "get_peft_model")
      add_adapter(call);
    else if (is_trainer(name))
      add_trainer(call);
    else
      add_all(call, "");
  }

  Arguments finish() { return {document_in_lines(all_, question_.file), {}, std::move(unknown_)}; }
  const std::string& trainer() const { return trainer_; }
  int trainer_line() const { return trainer_line_; }
  bool unsloth() const { return unsloth_; }

 private:
  void add_value(const std::string& key, const PythonTokens& tokens, const PythonCall& call,
                 int line) {
    if (!seen_.insert(key).second)
      return;  // the first of several models is the one that is trained
    const PythonValue value = value_of(file_, call.scope, tokens);
    const int place = line + question_.first_line - 1;
    if (value.kind == Kind::unknown) {
      unknown_.push_back({key, {"", place, value.text, value.variable}});
    } else if (const auto yaml = yaml_of(value)) {
      all_.push_back({key, *yaml, place});
    }
  }
  // An adapter's names are the command line's with this in front: "r" as "lora_r".
  void add_all(const PythonCall& call, const std::string& front) {
    for (const auto& keyword : call.keywords)
      add_value(keyword.name.starts_with(front) ? keyword.name : front + keyword.name,
                keyword.value, call, keyword.line);
  }

  void add_model(const PythonCall& call) {
    const bool fast = call.name.find("LanguageModel") != std::string::npos ||
                      call.name.find("FastModel") != std::string::npos ||
                      call.name.find("FastVisionModel") != std::string::npos;
    const bool causal = call.name.find("ForCausalLM") != std::string::npos ||
                        call.name.find("ForConditionalGeneration") != std::string::npos;
    if ((!fast && !causal) || model_) return;
    model_ = true;
    unsloth_ = fast;
    if (fast) all_.push_back({"unsloth", "true", call.line + question_.first_line - 1});
    if (!call.positional.empty())
      add_value("model_name_or_path", call.positional.front(), call, call.line);
    for (const auto& keyword : call.keywords) {
      const bool names_it =
          keyword.name == "pretrained_model_name_or_path" || keyword.name == "model_name";
      add_value(names_it ? "model_name_or_path" : keyword.name, keyword.value, call, keyword.line);
    }
  }

  void add_adapter(const PythonCall& call) {
    if (seen_.insert("use_peft").second)
      all_.push_back({"use_peft", "true", call.line + question_.first_line - 1});
    constexpr std::array others{"max_seq_length", "random_state"};
    constexpr std::string_view checkpointing = "use_gradient_checkpointing";
    for (const auto& keyword : call.keywords) {
      const std::string& name = keyword.name;
      if (name == checkpointing) {
        add_value(name, keyword.value, call, keyword.line);
        continue;
      }
      if (std::any_of(others.begin(), others.end(), [&](const char* each) { return name == each; }))
        continue;  // of unsloth, said elsewhere as well
      add_value(name.starts_with("lora_") ? name : "lora_" + name, keyword.value, call,
                keyword.line);
    }
  }

  void add_trainer(const PythonCall& call) {
    if (!trainer_.empty()) return;
    trainer_ = last_name(call.name);
    trainer_line_ = call.line + question_.first_line - 1;
    // A model by its name, and what older releases took here.
    constexpr std::array own{"max_seq_length", "packing", "max_length", "beta"};
    if (!call.positional.empty() && !model_) {
      const PythonValue first = value_of(file_, call.scope, call.positional.front());
      if (first.kind == Kind::text)
        add_value("model_name_or_path", call.positional.front(), call, call.line);
    }
    for (const auto& keyword : call.keywords) {
      if (keyword.name == "model" && !model_) {
        const PythonValue model = value_of(file_, call.scope, keyword.value);
        if (model.kind == Kind::text)
          add_value("model_name_or_path", keyword.value, call, keyword.line);
      }
      if (std::any_of(own.begin(), own.end(),
                      [&](const char* each) { return keyword.name == each; }))
        add_value(keyword.name, keyword.value, call, keyword.line);
    }
  }

  const PythonFile& file_;
  const PythonQuestion& question_;
  std::vector<NamedValue> all_{};
  std::vector<UnknownArgument> unknown_{};
  std::set<std::string> seen_{};
  std::string trainer_{};
  int trainer_line_ = 0;
  bool model_ = false, unsloth_ = false;
};

// Finds how the file starts itself: ["accelerate", "launch", "--config_file", NAME, ...].
std::optional<Launch> own_launch(const PythonFile& file, const PythonQuestion& question) {
  for (std::size_t scope = 0; scope < file.scopes.size(); ++scope)
    for (const PythonTokens& tokens : file.scopes[scope].statements)
      for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
        if (tokens[i].text != "[" || tokens[i + 1].kind != PythonKind::text ||
            (tokens[i + 1].text != "accelerate" && tokens[i + 1].text != "torchrun" &&
             tokens[i + 1].text != "deepspeed"))
          continue;
        const PythonValue list =
            value_of(file, scope, {tokens.begin() + static_cast<std::ptrdiff_t>(i), tokens.end()});
        if (list.kind != Kind::list) continue;
        ShellScript script;
        script.file = question.file;
        ShellCommand& command = script.commands.emplace_back();
        command.line = tokens[i].line + question.first_line - 1;
        for (const PythonValue& each : list.items) {
          const bool own = each.kind != Kind::text;
          command.words.push_back({own ? "own.py" : each.text, command.line});
        }
        const std::vector<Launch> launches = launches_in(question.data, script);
        if (!launches.empty()) return launches.front();
      }
  return std::nullopt;
}

// Returns the number of processes as the script, the file's own launch, or the file of Accelerate
// in that has it.
std::string processes_of(const PythonQuestion& question, const std::optional<Launch>& own) {
  if (question.processes) return std::to_string(*question.processes);
  if (!own) return "";
  if (own->gpus) return std::to_string(*own->gpus * own->nodes.value_or(1));
  if (own->file.text.empty()) return "";
  const auto file =
      find_beside({.data = question.data, .file = question.file, .settings = {}}, own->file.text);
  if (!file) return "";
  const AccelerateFile accelerate = read_accelerate(*file);
  return accelerate.gpus.gpus > 0 ? std::to_string(accelerate.gpus.gpus) : "";
}

}  // namespace

std::optional<PythonTraining> read_python_training(std::string_view text,
                                                   const PythonQuestion& question) {
  PythonFile file = read_python(text, question.file);
  file.environment = question.environment;
  file.given = question.given;
  file.said = question.said;
  auto own = own_launch(file, question);
  file.processes = processes_of(question, own);
  std::vector<PythonCall> calls = calls_in(file, is_wanted);
  // Models come before trainers, which may name the same.
  std::stable_partition(calls.begin(), calls.end(),
                        [](const PythonCall& call) { return !is_trainer(last_name(call.name)); });
  Collector collector(file, question);
  for (const PythonCall& call : calls) collector.add(call);
  if (collector.trainer().empty()) return std::nullopt;
  Launch launch;
  if (own) launch = std::move(*own);
  launch.program = collector.trainer();
  launch.line = collector.trainer_line();
  if (collector.unsloth() && !launch.gpus && launch.file.text.empty()) {
    launch.gpus = 1;
    launch.why_gpus = "Unsloth trains on one GPU unless a launcher starts more processes";
  }
  PythonTraining training{std::move(launch), collector.finish()};
  for (const PythonScope& scope : file.scopes)
    for (const PythonAssignment& each : scope.assignments)
      training.names.insert(each.names.begin(), each.names.end());
  return training;
}

}  // namespace stepsim
