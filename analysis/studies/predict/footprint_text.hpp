// These write a footprint for a reader, and for a machine.
#pragma once

#include <string>
#include <string_view>

#include "analysis/studies/predict/footprint.hpp"
#include "sim/base/record.hpp"

namespace stepsim {

// Returns a word of the code for a reader: "master_weights" becomes "master weights".
std::string spoken(std::string word);
// Writes a share of runs: "9 of 10", "98 of 100".
std::string chance_text(double share);
// Writes the verdict with its chance: "fits in 98 of 100", "tight, fits in 7 of 10: backward
// decides".
std::string verdict_text(const Footprint& footprint);
// Writes ", on stage 0, the fullest of 4 stages"; "" where all ranks hold the same.
std::string stage_text(const Footprint& footprint);
// One row per class at the peak, up to what is needed and usable.
std::string classes_table(const Footprint& footprint, const std::string& device);
// Writes what the driver's tool shows, such as nvidia-smi.
std::string shown_text(const Footprint& footprint, std::string_view tool);
// The most that is held in each moment, from model load to update.
std::string moments_table(const Footprint& footprint);
// The first request that fails, or that would with the constants at their worse ends; may be empty.
std::string failure_text(const Footprint& footprint);
// Empty when the host holds nothing between steps and has room for the load.
std::string host_text(const Footprint& footprint);

Records footprint_records(const Footprint& footprint);
// Returns a footprint with everything in it that there may be.
Footprint footprint_sample();

}  // namespace stepsim
