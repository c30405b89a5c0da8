// Tables of measured kernels: those that are named, or those of the catalogue.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "scenarios/rows/measured.hpp"

namespace stepsim {

std::vector<CsvTable> read_kernel_tables(const std::string& data,
                                         std::span<const std::string> files);

}  // namespace stepsim
