// An anchor is what a measured run said of the constants of its machine and stack. It is kept as
// draws of all constants together, each with a weight, so that what goes together stays together.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/scenario.hpp"
#include "sim/base/draw.hpp"
#include "topology/catalog.hpp"

namespace stepsim {

// A constant that the run moved; values are in the constant's unit.
struct MovedConstant {
  std::string name;
  double place = 0.5;    // in its range; 0.5 is the stated value
  std::string from, to;  // stated value and range, and the middle and eight of ten draws since
};

struct Anchor {
  std::string title;              // "lora8b.yml beside train.log"
  std::vector<std::string> from;  // "a progress bar: 8.33 s a step"
  std::string said;               // "12 % slower than the catalogue, mostly the host"
  std::string releases;           // that the run was taken to be of
  double effective = 0;           // draws that the weights leave
  std::vector<MovedConstant> moved;
  std::shared_ptr<const WeightedDraws> draws;
};

// Returns the constants that differ from site to site more than any table knows.
std::vector<std::pair<std::string, double>> constants_of_site();
// Returns the scenario's entries that its constants are of: {"gpu", "h100-sxm"}.
std::vector<std::pair<std::string, std::string>> entries_of(const Scenario& scenario);

// Returns what of the scenario's machine and stack the anchor does not speak of: "gpu".
std::vector<std::string> foreign_to(const Anchor& anchor, const Scenario& scenario);

std::string anchor_text(const Anchor& anchor);
// Throws UserError with every problem of the file.
Anchor parse_anchor(std::string_view text, const std::string& file);

// Commands hand these on as settings, which are no key of any file.
inline constexpr std::string_view anchor_setting = "anchor.file";
inline constexpr std::string_view no_anchor_setting = "anchor.none";
bool is_anchor_setting(std::string_view key);
bool is_without_anchor(std::span<const Setting> settings);

// Returns the anchor that the settings name, or else the first in the folders `anchors` of the
// catalogue that speaks of all entries of `scenario`; null: there is none. `file` says which.
std::shared_ptr<const Anchor> named_anchor(const Catalogue& data,
                                           std::span<const Setting> settings);
std::shared_ptr<const Anchor> usual_anchor(const Catalogue& data, const Scenario& scenario);
// Returns whether there is any to look for.
bool has_usual_anchors(const Catalogue& data, std::span<const Setting> settings);

// Returns the draw out of the anchor's, or its middle where nothing is drawn.
MaybeDraw anchored(const Anchor& anchor, const MaybeDraw& draw);
// Multiplies the step's time by what no constant explains where stack and GPU are the anchor's, and
// notes what was taken.
void apply_anchor(const Anchor& anchor, const MaybeDraw& draw, Scenario& scenario);

}  // namespace stepsim
