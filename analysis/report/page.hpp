// Runs and answers as one HTML page that needs nothing else: no network, no other file.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

}  // namespace stepsim
