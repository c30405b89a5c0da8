// This judges whether claims hold: under the stated constants, over draws of their ranges, and
// under other conditions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/studies/claims/claim.hpp"
#include "analysis/studies/predict/draws.hpp"
#include "sim/process/worker.hpp"
#include "topology/catalog.hpp"

namespace stepsim {

enum class Verdict : std::uint8_t {
  supported,  // holds, under all conditions
  refuted,    // does not hold, under none of them
  depends,    // holds under one condition and not under another
  undecided,  // what is known about the constants does not decide it, or it is not modelled
};
std::string_view to_text(Verdict verdict);

// A figure is the quantity of an assertion.
struct JudgedFigure {
  std::uint32_t holds = 0, draws = 0;
  double stated = 0;             // under stated constants
  double low = 0, high = 0;      // eight of ten draws of it
  std::vector<double> values{};  // of all draws

  double probability() const { return draws == 0 ? 0 : static_cast<double>(holds) / draws; }
};

// This is one condition, with the assertion in question; the first of a claim is the claim as it
// stands.
struct JudgedCondition : JudgedFigure {
  std::string name;
};

// One assertion of a claim, as it stands.
struct JudgedPart : JudgedFigure {
  std::string text;  // "a.step_time / b.step_time is 2.66 (2.09 to 4.23 in 8 of 10 draws; ...)"
};

struct JudgedClaim {
  std::string id, text;
  Verdict verdict = Verdict::undecided;
  std::optional<double> probability{};  // nothing: not modelled
  std::string reason{};                 // one line
  std::vector<JudgedCondition> conditions{};
  std::vector<JudgedPart> parts{};         // all of them have to hold
  std::vector<std::string> unknown{};      // what its scenarios differ in and is not modelled
  std::vector<std::string> to_measure{};   // constants that would decide it, most important first
  Dimension dimension = Dimension::ratio;  // of the quantity in question
  std::optional<double> at_least{}, at_most{};  // that is claimed of it
  std::vector<Mover> movers{};                  // of that quantity, the strongest first
};

// Writes a figure as a claim's reason has it.
std::string figure_text(double value, Dimension dimension);
// Writes "moved most by gpu.gemm.rate (1.2 at 600 TFLOP/s, 0.9 at 765 TFLOP/s; derived)".
std::string movers_text(const JudgedClaim& claim);

// Writes "yes, likely: 1.9 to 2.2, and 2.05 as stated", "open: 1.6 to 3.0, it depends on
// stack.host.hook".
std::string sentence_text(const JudgedClaim& claim);
// "node: h200: 1.8 (1.6 to 2.1), holds in 25 % of 8 draws", for each condition beyond the claim as
// it stands, also those that do not turn it.
std::vector<std::string> condition_texts(const JudgedClaim& claim);

struct JudgementOptions {
  Catalogue data;
  std::uint64_t seed = 1;
  std::uint32_t most_draws = 24;  // of each claim and condition: eight at a time, while more could
                                  // change the verdict
  std::size_t workers = usual_workers();
  Progress progress{};
};

// Claims share their replays: a scenario under the same draw is replayed once. Scenarios of a claim
// get the same draws.
std::vector<JudgedClaim> judge(std::span<const Claim> claims, const JudgementOptions& options);

}  // namespace stepsim
