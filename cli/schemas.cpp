#include <fmt/format.h>

#include "cli/result_kinds.hpp"

namespace stepsim {
namespace {

constexpr std::array kinds{
    &run_kind,     &grpo_kind,          &memory_kind,   &grpo_memory_kind, &explain_kind,
    &check_kind,   &sweep_kind,         &search_kind,   &plan_kind,        &validate_kind,
    &rows_kind,    &anchored_rows_kind, &anchor_kind,   &diagnosis_kind,   &collective_kind,
    &compare_kind, &kernels_kind,       &curves_kind,   &network_kind,     &list_kind,
    &entry_kind,   &model_kind,         &scenario_kind, &keys_kind,        &diff_kind};

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

std::string title_of(const ResultKind& kind) {
  return fmt::format("\n## {} (schema {})\n\n{}\n\n", kind.name, kind.schema, kind.what);
}

}  // namespace

std::string json_document() {
  std::string text(introduction);
  text += schema_of(head_of(run_kind));
  text +=
      "\n## What was asked\n\nBehind that, of `run`, `memory` and `search`; of `explain` and "
      "`diff` as "
      "`asked_a` and `asked_b`; of `validate` and `check` in lists of scenarios.\n\n";
  text += schema_of(asked_sample());
  for (const ResultKind* kind : kinds) text += title_of(*kind) + schema_of(kind->sample());
  return text;
}

}  // namespace stepsim
