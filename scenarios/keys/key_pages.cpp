#include "scenarios/keys/key_pages.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <stdexcept>

#include "scenarios/keys/key_tables.hpp"
#include "sim/base/config.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/table.hpp"

namespace stepsim {
namespace {

using TextsOfKeys = std::map<std::string, KeyTexts, std::less<>>;  // by their paths

TextsOfKeys read_texts() {
  constexpr const char* file = "key_texts.yaml";
  const Document document = parse_document(key_asset(file), file);
  const Table root = document.root();
  TextsOfKeys all;
  for (const std::string& block : root.keys()) {
    const Table keys = root.table(block);
    for (const std::string& key : keys.keys()) {
      KeyTexts& texts = all[fmt::format("{}.{}", block, key)];
      if (!keys.is_mapping(key)) {
        texts.sentence = keys.text(key);
        continue;
      }
      const Table said = keys.table(key);
      texts = {.sentence = said.text("says"),
               .otherwise = said.text_or("otherwise", ""),
               .example = said.text_or("example", ""),
               .left_out = said.flag_or("comment", false)};
    }
  }
  document.finish();
  return all;
}

// Names the block as key_texts.yaml does, where the keys of GRPO are those of a job of its own.
std::string block_of(std::string_view subject, std::string_view block) {
  const std::string_view named = subject.starts_with("job (") ? "grpo" : subject;
  return block.empty() ? std::string(named) : fmt::format("{}.{}", named, block);
}

// Writes what both pages say of a key, besides its name and its sentence.
template <class Subject>
std::string default_of(const Key<Subject>& key, const KeyTexts& texts) {
  const KeyFacts& facts = key.facts;
  if (facts.required) return "";
  if (!texts.otherwise.empty()) return texts.otherwise;
  std::string text;
  if (key.text != nullptr) text = key.text(facts, Subject{});
  return text.empty() ? "not set" : text;
}

// A sentence that explains the words lists them, too.
std::string allowed_text(const KeyFacts& facts, std::string_view sentence) {
  const bool told = std::ranges::all_of(facts.words, [&](std::string_view word) {
    return sentence.find(word) != std::string_view::npos;
  });
  return told ? "" : one_of(std::vector<std::string>(facts.words.begin(), facts.words.end()));
}

std::string allowed_of(const KeyFacts& facts) {
  switch (facts.kind) {
    case KeyKind::flag:
      return "true or false";
    case KeyKind::word:
      return one_of(std::vector<std::string>(facts.words.begin(), facts.words.end()));
    case KeyKind::whole:
    case KeyKind::number:
      return facts.high == 0
                 ? "a number from " + number_text(facts.low)
                 : fmt::format("{} to {}", number_text(facts.low), number_text(facts.high));
    default:
      return "";
  }
}

std::string capital(std::string_view sentence) {
  std::string text(sentence);
  text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return text;
}

constexpr std::string_view opening =
    R"(# A scenario with every key there is. Copy it and keep what you need: only the required keys have to stay. A key that is
# left out is what the stack's file says under `defaults:`, and else the default that stands after its sentence.
#   stepsim run my.yaml            time, rates, where the time goes, memory
#   stepsim memory my.yaml         does it fit, and what would make it fit
#   stepsim show my.yaml           every key with its value and where that comes from
# What you do not know of a run may be a range. Of a number in job or strategy:
#   fill: {value: 0.7, low: 0.4, high: 1, source: rows of chats, nobody counted}
# of a word, a flag or a number out of a few:
#   layout: {value: model, any_of: [model, separate], source: not said}
# The value is what is predicted; --samples draws from the range, and `run` says how much depends on it.
# This file is printed by `stepsim list keys --template sft`.
)";
constexpr std::string_view grpo_opening =
    R"(# A GRPO scenario with every key of its own; what the other blocks may say stands in ../template.yaml. Keys that
# open-instruct has carry its names and, where not said otherwise, its defaults.
# This file is printed by `stepsim list keys --template grpo`.
)";

constexpr std::size_t comment_column = 36, last_column = 128;

struct TemplateWriter {
  std::string text;

  // The comment begins behind the value, and goes on below itself.
  void line(const std::string& start, const std::string& comment) {
    if (comment.empty()) {
      text += start + '\n';
      return;
    }
    const std::size_t column = std::max(comment_column, start.size() + 2);
    const std::string wrapped = wrap(comment, last_column - comment_column, 0);
    std::string lead = fmt::format("{:<{}}", start, column - 1);
    for (const std::string_view part : split(wrapped, '\n')) {
      text += fmt::format("{}# {}\n", lead, part);
      lead = std::string(comment_column - 1, ' ');
    }
  }

  template <class Subject>
  void key(const Key<Subject>& key, const KeyTexts& texts, std::string_view indent,
           bool commented) {
    const KeyFacts& facts = key.facts;
    std::string value = texts.example;
    if (value.empty() && key.text != nullptr) value = key.text(facts, Subject{});
    std::string comment = texts.sentence;
    if (const std::string words = allowed_text(facts, comment); !words.empty())
      comment += ": " + words;
    const std::string fallback = default_of(key, texts);
    comment += facts.required ? "; required" : "; default: " + fallback;
    line(fmt::format("{}{}{}: {}", indent, commented ? "# " : "", facts.name, value), comment);
  }

  template <class Subject>
  void block(std::string_view subject, const Block<Subject>& block) {
    constexpr std::string_view indent = "  ";
    std::string inner(indent);
    if (!block.name.empty()) {
      line(fmt::format("{}{}{}:", indent, block.left_out ? "# " : "", block.name),
           std::string(block.sentence));
      inner += block.left_out ? "#   " : "  ";
    } else if (!block.sentence.empty()) {
      text += fmt::format("{}# {}:\n", indent, capital(block.sentence));
    }
    const std::string path = block_of(subject, block.name);
    for (const Key<Subject>& each : block.keys) {
      const KeyTexts& texts = key_texts(path, each.facts.name);
      const bool own = block.name.empty() || !block.left_out;
      key(each, texts, inner,
          own && (texts.left_out || (texts.example.empty() && each.text == nullptr)));
    }
  }

  template <class Subject>
  void blocks(std::string_view name, std::span<const Block<Subject>> list,
              std::string_view comment = "") {
    line(fmt::format("{}:", name), std::string(comment));
    for (const Block<Subject>& each : list) block(name, each);
  }

  void head(std::initializer_list<std::string_view> names) {
    for (const Key<Head>& each : head_keys()) {
      if (!holds(names, each.facts.name)) continue;
      const KeyTexts& texts = key_texts("", each.facts.name);
      key(each, texts, "", texts.left_out);
    }
  }
};

struct Grouping {
  std::vector<KeyGroup> groups;

  void begin(std::string block, std::string_view sentence) {
    groups.push_back({std::move(block), sentence, {}});
  }

  template <class Subject>
  void keys(std::span<const Key<Subject>> list, const std::string& block) {
    for (const Key<Subject>& key : list) {
      const KeyFacts& facts = key.facts;
      const KeyTexts& texts = key_texts(block, facts.name);
      groups.back().rows.push_back(
          {facts.name, kind_names[static_cast<std::size_t>(facts.kind)], texts.sentence,
           allowed_of(facts), facts.required ? "required" : default_of(key, texts), facts.words});
    }
  }

  // A block without a name and a sentence goes on where the one before it ends.
  template <class Subject>
  void blocks(std::string_view name, std::span<const Block<Subject>> list) {
    for (const Block<Subject>& block : list) {
      const std::string full =
          block.name.empty() ? std::string(name) : fmt::format("{}.{}", name, block.name);
      if (groups.back().block != full || !block.sentence.empty()) begin(full, block.sentence);
      keys(block.keys, block_of(name, block.name));
    }
  }
};

}  // namespace

std::string template_text(Method method) {
  TemplateWriter writer;
  if (method == Method::grpo) {
    writer.text = grpo_opening;
    writer.text +=
        "name: My GRPO run\nmodel: olmo-2-7b\ncluster: {node: gh200-4, nodes: 4}\n"
        "stack: deepspeed-hf                # of the learners\n";
    writer.head({"engine"});
    writer.text += "\njob:\n  method: grpo\n";
    for (const Block<Grpo>& block : grpo_blocks()) writer.block("grpo", block);
    writer.block("grpo", grpo_switches());
    writer.text += "\nstrategy:\n  optimizer: adamw\n";
    return writer.text;
  }
  writer.text = opening;
  writer.head({"name", "note", "family", "model"});
  writer.blocks("cluster", cluster_blocks());
  writer.head({"stack", "recipe", "constants"});
  writer.text += '\n';
  writer.blocks("job", std::span(&method_block(), 1));
  for (const Block<Job>& block : job_blocks()) writer.block("job", block);
  writer.text += '\n';
  writer.blocks("strategy", strategy_blocks());
  writer.text +=
      "\n# What a run of this really took, for `stepsim validate`. A figure may be a range [low, "
      "high].\n";
  writer.blocks("measured", observation_blocks());
  writer.text +=
      "# The same keys for what somebody expects: `stepsim validate --estimates`.\n"
      "estimated:\n  wall: 4 h\n  source: the back of an envelope\n";
  return writer.text;
}

const KeyTexts& key_texts(std::string_view block, std::string_view key) {
  static const TextsOfKeys all = read_texts();  // of what is compiled in
  constexpr std::string_view grpo = "grpo", job = "job", measured = "measured";
  constexpr std::string_view estimated = "estimated";
  for (const auto& [said, meant] : {std::pair{block, block}, std::pair{grpo, job},
                                    std::pair{job, grpo}, std::pair{estimated, measured}}) {
    if (!block.starts_with(said)) continue;
    const auto place = all.find(fmt::format("{}{}.{}", meant, block.substr(said.size()), key));
    if (place != all.end()) return place->second;
  }
  throw std::logic_error(fmt::format("no text is known of the key {}.{}", block, key));
}

std::string KeyGroup::path(const KeyRow& row) const {
  return block.empty() ? std::string(row.name) : fmt::format("{}.{}", block, row.name);
}

std::vector<KeyGroup> key_groups() {
  Grouping all;
  all.begin("", "");
  all.keys(head_keys(), "");
  all.blocks("cluster", cluster_blocks());
  all.blocks("job", std::span(&method_block(), 1));
  all.blocks("job", job_blocks());
  all.blocks("strategy", strategy_blocks());
  all.blocks("measured", observation_blocks());
  constexpr std::string_view grpo = "job (method: grpo)";
  all.blocks(grpo, grpo_blocks());
  all.blocks(grpo, std::span(&grpo_switches(), 1));
  return std::move(all.groups);
}

std::string key_page() {
  std::string text =
      "# Keys of a scenario\n\n"
      "Printed by `stepsim list keys --markdown` from the tables that the reader uses. `stepsim "
      "show SCENARIO` prints each key\nwith its value and where that comes from; "
      "[scenarios/template.yaml](../scenarios/template.yaml) is a file to copy.\n";
  for (const KeyGroup& group : key_groups()) {
    text += fmt::format("\n## {}\n\n", group.block.empty() ? "Top of the file" : group.block);
    if (!group.sentence.empty()) text += capital(group.sentence) + ".\n\n";
    text += "| Key | What it says | Allowed | Default |\n|---|---|---|---|\n";
    for (const KeyRow& row : group.rows)
      text +=
          fmt::format("| `{}` | {} | {} | {} |\n", row.name, row.sentence, row.allowed, row.usual);
  }
  return text + fmt::format(
                    "\nKnown there, and without effect on time and memory: {}.\n\n"
                    "`estimated` has the keys of `measured`.\n",
                    fmt::join(grpo_keys_without_effect(), ", "));
}

}  // namespace stepsim
