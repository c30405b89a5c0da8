#include "cli/keys.hpp"

#include <fmt/format.h>

#include "cli/result_kinds.hpp"
#include "scenarios/keys/key_pages.hpp"
#include "sim/base/error.hpp"
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

Records keys_records() {
  Records keys;
  for (const KeyGroup& group : key_groups())
    for (const KeyRow& row : group.rows)
      keys.emplace_back("", "",
                        Records{{"block", "of the file; empty: its top", group.block},
                                {"key", "its name", row.name},
                                {"kind", "of its value", row.kind},
                                {"allowed", "words or limits", row.allowed},
                                {"default", "when nobody says it", row.usual},
                                {"sentence", "what it is", row.sentence}});
  return {{"keys", "of a scenario", RecordList{keys}}};
}

}  // namespace

Records keys_sample() {
  return keys_records();
}

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
  return options.has("json") ? to_json(joined({head_of(keys_kind), keys_records()})) : keys_text();
}

}  // namespace stepsim
