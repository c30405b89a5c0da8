// These print what `run` and `memory` say of a GRPO scenario.
#pragma once

#include <string>

#include "analysis/studies/grpo/grpo_prediction.hpp"
#include "analysis/studies/outcome/interval.hpp"
#include "analysis/studies/outcome/open_values.hpp"
#include "cli/result_kinds.hpp"

namespace stepsim {

// Writes the title, and the answer in a sentence.
std::string grpo_head(const Scenario& scenario, const GrpoPrediction& prediction,
                      const std::optional<Interval>& interval);
// Writes all else within a screen: lists have about `most` entries each.
std::string grpo_screen(const Scenario& scenario, const GrpoPrediction& prediction,
                        const std::optional<Interval>& interval, const std::vector<OpenValue>& open,
                        std::size_t most);
std::string grpo_text(const Scenario& scenario, const GrpoPrediction& prediction,
                      const std::optional<Interval>& interval = {});
// Writes the answer alone, in a line.
std::string grpo_brief_text(const GrpoPrediction& prediction,
                            const std::optional<Interval>& interval);
Records grpo_records(const Scenario& scenario, const GrpoPrediction& prediction,
                     const std::optional<Interval>& interval = {});

std::string grpo_memory_text(const Scenario& scenario, const GrpoMemory& memory);
Records grpo_memory_records(const GrpoMemory& memory);

}  // namespace stepsim
