// A sweep as a person or a program reads it.
#pragma once

#include <span>
#include <string>

#include "analysis/studies/sweep/sweep_reading.hpp"
#include "analysis/studies/sweep/sweep_search.hpp"
#include "cli/result_kinds.hpp"
#include "cli/sweep_notes.hpp"

namespace stepsim {

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
