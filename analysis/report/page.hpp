// Runs and answers as one HTML page that needs nothing else: no network, no other file.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/trace.hpp"

namespace stepsim {

struct PageStep {
  std::string label;         // what the reader called it
  const Run* run = nullptr;  // lives longer than the page is made
};

// One part of the difference between two steps.
struct PageGapRow {
  std::string cause;
  double seconds = 0;                              // positive: it makes the first step longer
  double standard_error = 0;                       // s; 0: exact
  std::optional<std::pair<double, double>> range;  // s; eight of ten draws of the constants
  std::string reading;                             // a sentence: what if it were free
  std::string constants;                           // that carry it, with their grades
};

// A stretch of what a step waited for.
struct PagePathPart {
  std::string title;  // "backward, layers 47 to 0"
  double seconds = 0;
  std::vector<std::pair<std::string, double>> causes;  // largest first
};

struct PageGap {
  std::string headline;
  std::string sureness;             // how many draws agree; empty: none were made
  std::vector<std::string> movers;  // constants that move the gap most, in words
  std::vector<PagePathPart> path_a, path_b;
  std::string parting;             // where the paths part, in words; empty: nowhere
  std::vector<std::string> notes;  // what is not equal between the two
  std::vector<PageGapRow> rows;    // they add up to the gap
};

struct PageClaim {
  std::string id;
  std::string text;
  std::string verdict;  // supported, refuted, depends, undecided
  std::optional<double> probability;
  std::string reason;
  std::string moved;      // which constants move it most, in words
  std::size_t draws = 0;  // behind the probability
};

// One point of a sweep. Figures that it has not are not numbers.
struct PagePoint {
  std::vector<std::string> values;                    // of the keys
  std::string reason;                                 // why it cannot run; empty: it can
  std::string mark;                                   // "fastest"
  double step_time = 0;                               // s
  double rate = 0;                                    // tokens per second and GPU
  double memory = 0;                                  // bytes
  double capacity = 0;                                // bytes
  std::vector<std::pair<std::string, double>> parts;  // seconds by cause, or by phase
};

struct PageSweep {
  std::string title;
  std::vector<std::string> keys;
  std::vector<PagePoint> points;
  std::vector<std::string> reading;                     // what they say, in sentences
  std::vector<std::pair<std::string, double>> changes;  // of the fastest point: what each gains
};

struct Page {
  std::string title;
  std::vector<PageStep> steps;
  std::optional<PageGap> gap;  // between the first two steps
  std::vector<PageClaim> claims;
  std::optional<PageSweep> sweep;
};

std::string page_html(const Page& page);

// The texts that a page is put together from, by the names of their files; they are compiled in.
std::string_view page_asset(std::string_view name);

}  // namespace stepsim
