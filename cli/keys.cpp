#include "cli/keys.hpp"

#include <fmt/format.h>

#include "scenarios/keys/key_pages.hpp"
#include "sim/base/error.hpp"
#include "sim/base/json.hpp"
#include "sim/base/table.hpp"

namespace stepsim {
namespace {

std::string keys_text() {
  constexpr std::size_t indent = 6, width = 100;
  std::string text;
  for (const KeyGroup& group : key_groups()) {
    text += fmt::format("{}{}\n", text.empty() ? "" : "\n",
                        group.block.empty() ? "top of the file" : group.block);
    if (!group.sentence.empty()) text += fmt::format("  {}\n", wrap(group.sentence, width, 2));
    for (const KeyRow& row : group.rows) {
      std::string said =
          fmt::format("{}: {}", row.name, row.allowed.empty() ? row.kind : row.allowed);
      said += row.usual == "required" ? "; required" : fmt::format("; default: {}", row.usual);
      text += fmt::format("  {}\n      {}\n", wrap(said, width, indent),
                          wrap(row.sentence, width, indent));
    }
  }
  return text;
}

std::string keys_json() {
  JsonWriter json;
  json.begin_object().key("keys").begin_array();
  for (const KeyGroup& group : key_groups())
    for (const KeyRow& row : group.rows)
      json.begin_object()
          .member("block", group.block)
          .member("key", row.name)
          .member("kind", row.kind)
          .member("allowed", row.allowed)
          .member("default", row.usual)
          .member("sentence", row.sentence)
          .end_object();
  json.end_array().end_object();
  return json.take();
}

}  // namespace

std::string keys_listed(const Options& options) {
  const int forms = static_cast<int>(options.has("json")) +
                    static_cast<int>(options.has("markdown")) +
                    static_cast<int>(options.has("template"));
  if (forms > 1)
    throw UserError("--json, --markdown and --template: only one of them can be printed");
  if (options.has("template")) {
    const std::string method = word_of(options, "template", "sft", {"sft", "grpo"});
    return template_text(method == "grpo" ? Method::grpo : Method::sft);
  }
  if (options.has("markdown")) return key_page();
  return options.has("json") ? keys_json() : keys_text();
}

}  // namespace stepsim
