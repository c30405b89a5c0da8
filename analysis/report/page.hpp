// Runs and answers as one HTML page that needs nothing else: no network, no other file.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/studies/claims/judgement.hpp"
#include "analysis/studies/explain/explain.hpp"
#include "analysis/studies/sweep/sweep_reading.hpp"
#include "sim/base/json.hpp"
#include "sim/base/record.hpp"
#include "sim/trace.hpp"

namespace stepsim {

struct PageStep {
  std::string label;                   // what the reader called it
  const Run* run = nullptr;            // lives longer than the page is made
  std::string taken{};                 // what the scenario was read as, in a line
  std::vector<std::string> missing{};  // from time or memory, with the effect of each
};

struct Page {
  std::string title;
  std::vector<PageStep> steps;
  std::optional<Records> gap;  // between the first two steps
  Records claims;              // items of a list
  std::optional<Records> sweep;
};

// Returns data for a page to show: no text of it ends the script element that it stands in, or
// holds letters that cannot be seen.
std::string page_json(std::string_view json);

std::string page_html(const Page& page);

// The page of `stepsim serve`, which asks a server for its answers. `data`: what it begins with.
std::string serve_html(std::string_view title, const Records& data);

// The texts that a page is put together from, by the names of their files; they are compiled in.
std::string_view page_asset(std::string_view name);

// These write what studies found as parts of a page: why two steps differ, and which claims hold.
Records page_gap(const Explanation& explanation);
// Returns the claims as items of a list.
Records page_claims(std::span<const JudgedClaim> claims);

// Writes the step, with its timeline in about `most_spans` spans.
void write_step(JsonWriter& json, const PageStep& step, std::size_t most_spans);

// This writes a sweep as a part of a page.
Records page_sweep(const SweepTable& table, const SweepReport& report, const SweepAdvice& advice);

}  // namespace stepsim
