// A prediction beside what the real run says of itself.
#pragma once

#include <optional>
#include <string>

#include "analysis/studies/outcome/interval.hpp"
#include "analysis/studies/predict/prediction.hpp"
#include "scenarios/foreign/logs/trainer_log.hpp"
#include "sim/base/record.hpp"

namespace stepsim {

// These write the two, one below the other; "" without a log.
std::string beside_text(const std::optional<TrainerLog>& log, const Prediction& prediction,
                        const std::optional<Interval>& interval);
Record beside_record(const std::optional<TrainerLog>& log, const Prediction& prediction,
                     const std::optional<Interval>& interval);

}  // namespace stepsim
