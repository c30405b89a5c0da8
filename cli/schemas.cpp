#include <fmt/format.h>

#include "cli/result_kinds.hpp"

namespace stepsim {
namespace {

struct Schema {
  const ResultKind& kind;
  Records (*sample)();
};
constexpr std::array schemas{Schema{run_kind, run_sample},
                             Schema{grpo_kind, grpo_sample},
                             Schema{memory_kind, memory_sample},
                             Schema{grpo_memory_kind, grpo_memory_sample},
                             Schema{explain_kind, explain_sample},
                             Schema{check_kind, check_sample},
                             Schema{sweep_kind, sweep_sample},
                             Schema{search_kind, search_sample},
                             Schema{validate_kind, validate_sample},
                             Schema{rows_kind, rows_sample},
                             Schema{collective_kind, collective_sample},
                             Schema{compare_kind, compare_sample},
                             Schema{kernels_kind, kernels_sample},
                             Schema{curves_kind, curves_sample},
                             Schema{network_kind, network_sample},
                             Schema{list_kind, list_sample},
                             Schema{entry_kind, entry_sample},
                             Schema{model_kind, model_sample},
                             Schema{scenario_kind, scenario_sample},
                             Schema{keys_kind, keys_sample},
                             Schema{diff_kind, diff_sample}};

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
      "\n## What was asked\n\nBehind that, of `run` and `memory`; of `explain` as `asked_a` and "
      "`asked_b`.\n\n";
  text += schema_of(asked_records({}, {}));
  for (const Schema& schema : schemas) text += title_of(schema.kind) + schema_of(schema.sample());
  return text;
}

}  // namespace stepsim
