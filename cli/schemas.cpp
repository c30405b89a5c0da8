#include <fmt/format.h>

#include <algorithm>

#include "cli/result_kinds.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

constexpr std::array kinds{&run_kind,        &grpo_kind,     &memory_kind,   &grpo_memory_kind,
                           &explain_kind,    &check_kind,    &sweep_kind,    &search_kind,
                           &plan_kind,       &validate_kind, &anchor_kind,   &diagnosis_kind,
                           &collective_kind, &compare_kind,  &kernels_kind,  &list_kind,
                           &entry_kind,      &model_kind,    &scenario_kind, &keys_kind,
                           &diff_kind,       &together_kind};

constexpr std::string_view introduction = R"(# What `--json` prints

Made by `stepsim list --json-schemas` out of the records that the commands print; a test holds this file equal to it.

One object for each command, in UTF-8. Numbers are SI (seconds, bytes, FLOP; shares of one, not of a hundred) unless the key
names another unit, and read back to the same bits. What is not known is `null`. An interval is `[low, high]`: eight of ten
draws of the constants lie in it. A `reason` or `note` is for people and may change its words.

`schema` is a number for each kind of result. It rises when a key goes, or changes its name, type, unit or meaning. New keys
may come without it, in any place: readers leave out what they do not know. Keys in capitals stand for names that depend
on the input.

## In front of every result

)";

Records schema_of_parts(const Records& parts);

// Names a type; what may be missing may be null, and so may a number that none can be said of.
Records typed(std::string_view type, const Record& record) {
  std::string what = record.label;
  if (!name_of(record.unit).empty()) what += fmt::format(", in {}", name_of(record.unit));
  Records schema;
  if (record.label.starts_with("a number, a flag or a text"))
    schema.emplace_back("type", "", list_of({"number", "boolean", "string", "null"}));
  else if (record.optional || type == "number")
    schema.emplace_back("type", "", list_of({std::string(type), "null"}));
  else
    schema.emplace_back("type", "", type);
  if (!what.empty()) schema.emplace_back("description", "", what);
  return schema;
}

Records schema_of_record(const Record& record) {
  constexpr std::array<std::string_view, 6> types{"number", "boolean", "string",
                                                  "array",  "object",  "array"};
  Records schema = typed(types[static_cast<std::size_t>(record.kind)], record);
  if (record.missing() || record.value.index() != 4) return schema;
  if (record.kind == Record::Kind::object) {
    append(schema, schema_of_parts(record.parts()));
  } else if (const Records& items = record.parts();
             !items.empty() && std::ranges::all_of(items, [&](const Record& each) {
               return each.kind == items.front().kind;  // a pair of a name and a number is not
             })) {
    schema.emplace_back("items", "", schema_of_record(items.front()));
  }
  return schema;
}

// A key that says so, or is in capitals, stands for any name.
Records schema_of_parts(const Records& parts) {
  Records named, any;
  for (const Record& part : parts) {
    const bool stands_for_any =
        part.label.find("one key for each") != std::string::npos ||
        std::ranges::none_of(part.key, [](char c) { return c >= 'a' && c <= 'z'; });
    (stands_for_any ? any : named)
        .emplace_back(stands_for_any ? "additionalProperties" : part.key, "",
                      schema_of_record(part));
  }
  Records schema{{"properties", "", named}};
  append(schema, any);
  return schema;
}

Records asked_in_front(int scenarios) {
  if (scenarios < 2) return scenarios == 1 ? asked_sample() : Records();
  return {{"asked_a", "what was asked of A", asked_sample()},
          {"asked_b", "what was asked of B", asked_sample()}};
}

}  // namespace

std::span<const ResultKind* const> result_kinds() {
  return kinds;
}

Records json_schema(const ResultKind& kind) {
  return joined(
      {{{"title", "", kind.name}, {"description", "", kind.what}, {"type", "", "object"}},
       schema_of_parts(joined({head_of(kind), asked_in_front(kind.asked), kind.sample()}))});
}

std::string json_document() {
  std::string text(introduction);
  text += schema_of(head_of(run_kind));
  text +=
      "\n## What was asked\n\nBehind that, of `run`, `memory` and `search`; of `explain` and "
      "`diff` as "
      "`asked_a` and `asked_b`; of `validate` and `check` in lists of scenarios.\n\n";
  text += schema_of(asked_sample());
  for (const ResultKind* kind : kinds)
    text += fmt::format("\n## {} (schema {})\n\n{}\n\n{}", kind->name, kind->schema, kind->what,
                        schema_of(kind->sample()));
  return text;
}

}  // namespace stepsim
