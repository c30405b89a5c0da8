// Reads the keys of a scenario into the structs that they set.
#pragma once

#include <span>
#include <string_view>

#include "scenarios/scenario.hpp"
#include "sim/base/config.hpp"

namespace stepsim {

// Throws UserError with every problem of the document. `stack` changes the stack's file:
// {"kernels.gemm", "{value: 0.9, grade: fitted, source: a trial}"}.
Scenario read_scenario(const Catalogue& data, Document document, const MaybeDraw& draw,
                       std::span<const Setting> stack);

// Reads a text as a scenario file holds it. `file` is only a name for messages.
Scenario parse_scenario(const Catalogue& data, std::string_view text, std::string_view file,
                        const MaybeDraw& draw = {}, std::span<const Setting> stack = {});

// Makes settings stand over DeepSpeed's file, if the document names one.
void let_settings_stand(const Catalogue& data, Document& document,
                        std::span<const Setting> settings);

}  // namespace stepsim
