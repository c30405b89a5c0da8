// This predicts every run that somebody measured, and says how far off we are by kind of run.
#pragma once

#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/studies/predict/footprint.hpp"
#include "scenarios/scenario.hpp"
#include "sim/process/worker.hpp"
#include "topology/catalog.hpp"

namespace stepsim {

enum class Against : std::uint8_t { measured, estimated };

struct ValidatedFigure {
  std::string id;  // the scenario file's name
  std::string family;
  Metric metric{};
  Range observed;
  std::optional<double> predicted;  // nothing: the scenario does not say what it would take
  double error = 0;                 // signed; 0 inside a range
  std::optional<double> band;       // error that the file allows
  std::optional<Range> interval;    // eight draws of ten, and the prediction

  bool held() const {
    return interval && interval->low <= observed.high && observed.low <= interval->high;
  }
  bool inside() const { return predicted && band && std::abs(error) <= *band; }
};

// A run that was measured did fit, whether its file says so or not.
struct ValidatedVerdict {
  std::string id;
  std::string family;
  bool fits = false;
  Fit predicted{};
  double needed = 0, capacity = 0;  // bytes

  bool right() const { return fits == (predicted != Fit::oom); }
};

struct FamilyErrors {
  std::string name;
  std::size_t rows = 0;
  double median_abs_error = 0;
  double p90_abs_error = 0;
  double signed_mean = 0;
};

struct Validation {
  std::vector<ValidatedFigure> figures;    // by family, then in the order of the files
  std::vector<ValidatedVerdict> verdicts;  // likewise
  std::vector<FamilyErrors> families;
};

struct NamedScenario {
  std::string id;
  Scenario scenario;
  std::string file{};  // to draw from
};

// This says how often constants and what a scenario does not know are drawn for intervals; 0:
// never.
struct Sampling {
  Catalogue data;
  std::uint32_t samples = 0;
  std::uint64_t seed = 1;
};

// Scenarios without such a block are left out.
Validation validate(std::span<const NamedScenario> scenarios, Against against,
                    const Sampling& sampling = {}, const Progress& progress = {});

}  // namespace stepsim
