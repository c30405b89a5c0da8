// A sweep as a person or a program reads it.
#pragma once

#include <string>
#include <vector>

#include "analysis/studies/sweep/sweep_reading.hpp"
#include "analysis/studies/sweep/sweep_search.hpp"
#include "analysis/studies/sweep/sweep_table.hpp"
#include "cli/result_kinds.hpp"
#include "scenarios/assumption.hpp"

namespace stepsim {

// These notes say what a sweep has to say of the file that its points are made from.
struct SweepNotes {
  std::string taken;                    // as `run` prints it: what is assumed, what is not modelled
  std::string in_brief;                 // the same in a few lines
  std::vector<Assumption> assumptions;  // the points may say what these leave open
  std::vector<std::string> notes;       // of the file, and of keys that are varied for nothing
};
SweepNotes notes_on(const Catalogue& data, const SweepTable& table);

std::string sweep_text(const SweepTable& table, const SweepReport& report,
                       const SweepAdvice& advice);
// Does the same without the table.
std::string sweep_brief(const SweepTable& table, const SweepReport& report,
                        const SweepAdvice& advice, const SweepNotes& notes);
Records sweep_records(const SweepTable& table, const SweepReport& report, const SweepAdvice& advice,
                      const SweepNotes& notes, const std::optional<PlayedBy>& played);

std::string search_text(const Search& search, const SearchResult& result);
Records search_records(const Search& search, const SearchResult& result);

// Returns whether it can run, and every metric.
Records outcome_records(const Outcome& outcome);

}  // namespace stepsim
