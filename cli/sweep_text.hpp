// A sweep as a person or a program reads it.
#pragma once

#include <span>
#include <string>

#include "analysis/studies/sweep/sweep_search.hpp"
#include "analysis/studies/sweep/sweep_what_ifs.hpp"

namespace stepsim {

std::string sweep_text(const SweepTable& table, const SweepReport& report,
                       std::span<const WhatIf> changes);
std::string sweep_json(const SweepTable& table, const SweepReport& report,
                       std::span<const WhatIf> changes);

std::string search_text(const Search& search, const SearchResult& result);
std::string search_json(const Search& search, const SearchResult& result);

}  // namespace stepsim
