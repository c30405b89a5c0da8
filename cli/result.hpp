// All results say what they are, what was asked, and how sure the answer is.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/studies/predict/draws.hpp"
#include "scenarios/scenario.hpp"
#include "sim/base/record.hpp"

namespace stepsim {

// A kind is what a command prints with --json. The number rises when a key goes, changes its name,
// type, unit or meaning; new keys may come without.
struct ResultKind {
  std::string_view name;
  int schema = 1;
  std::string_view what;          // "one step of a scenario"
  Records (*sample)() = nullptr;  // a result with everything in it that there may be
  int asked = 0;                  // so many scenarios that were asked stand in front
};

// Returns the kind, its schema and the version of stepsim: what stands in front of every result.
Records head_of(const ResultKind& kind);

// Returns what the result is, what was asked, and the answer.
Records result_records(const ResultKind& kind, const Records& asked, const Records& answer);
// Prints the same as JSON on stdout.
void print_result(const ResultKind& kind, const Records& asked, const Records& answer);

// This says how a scenario was named on the command line.
struct AskedScenario {
  std::string source;  // path or name
  std::vector<Setting> settings{};
};
// Returns what was asked, what was read and makes no difference, what was taken for a file of
// another program, and the guesses behind the answer.
Records asked_records(const Scenario& scenario, const AskedScenario& asked);
// These are for studies that read a scenario themselves. They return nothing where the settings
// make no scenario, about which the study has its own word.
std::optional<Scenario> scenario_if_sound(const Catalogue& data, const AskedScenario& asked);
std::optional<Records> asked_of(const Catalogue& data, const AskedScenario& asked);
// Returns a record with everything in it that there may be.
Records asked_sample();
// Returns what was set, as KEY=VALUE.
RecordList setting_list(std::span<const Setting> settings);

Records constant_records(const NamedConstant& constant);

// Lists constants with a figure in seconds at either end of their ranges, under these keys.
RecordList mover_list(const std::vector<Mover>& movers, std::string_view low_key,
                      std::string_view high_key);
// Writes the same as a table, or "" where there is nothing.
std::string movers_table(const std::vector<Mover>& movers, std::string_view what,
                         std::string_view figure, std::string (*text)(Seconds));

// ---- to put records together

// Parts that are there only when what they are made of is.
template <class Value, class Make>
Record parts_if(std::string_view key, std::string_view label, const std::optional<Value>& from,
                const Make& make) {
  return {key, label, from ? std::optional<Records>(make(*from)) : std::nullopt};
}

// Returns many parts after each other.
Records joined(std::initializer_list<Records> lists);

}  // namespace stepsim
