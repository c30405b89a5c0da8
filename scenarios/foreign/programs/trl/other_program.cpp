#include <fmt/format.h>

#include "scenarios/foreign/programs/trl/python_source.hpp"
#include "scenarios/foreign/text/python_values.hpp"
#include "workloads/model/other_models.hpp"

namespace stepsim {

std::string other_training_in(const Catalogue& data, std::string_view text,
                              const std::string& file) {
  const PythonFile program = read_python(text, file);
  std::string found;
  for (const PythonCall& call : calls_in(program, [](const std::string& name) {
         return name == "from_pretrained" || name == "SentenceTransformer" ||
                name == "CrossEncoder" || name == "DiffusionPipeline";
       })) {
    if (call.name.find("ForCausalLM") != std::string::npos ||
        call.name.find("LanguageModel") != std::string::npos)
      return "";
    if (!found.empty() || call.name.find("Tokenizer") != std::string::npos) continue;
    std::string why = why_not_modelled(data, call.name);
    std::string named = call.name.substr(0, call.name.rfind(".from_pretrained"));
    if (why.empty() && !call.positional.empty()) {
      const PythonValue model = value_of(program, place_of(call), call.positional.front());
      if (model.kind == PythonValue::Kind::text) {
        why = why_not_modelled(data, model.text);
        named = model.text;
      }
    }
    if (!why.empty()) found = fmt::format("loads {} in line {}: that is {}", named, call.line, why);
  }
  return found;
}

}  // namespace stepsim
