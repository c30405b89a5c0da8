// Sentences about scenarios that can be true or false, as data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/scenario.hpp"
#include "sim/ideal.hpp"

namespace stepsim {

// A scenario under a claim's own name, with the claim's changes.
struct ClaimScenario {
  std::string alias;
  std::string source;  // path or name
  std::vector<Setting> settings;
};

// This is a metric of one of them: "zero3.step_time".
struct MetricOf {
  std::size_t scenario = 0;  // its place in the claim
  std::string metric;

  friend bool operator==(const MetricOf&, const MetricOf&) = default;
};

// A quantity is what is asserted of: a number that comes out of one or more replays.
struct ClaimQuantity {
  enum class Kind : std::uint8_t {
    value,     // a metric
    ratio,     // of two metrics
    closes,    // the part of the gap between two step times that free causes close
    exponent,  // of the power law through points: metric over what varies
    change,    // a metric at the last point over the same at the first
    rises,     // the least ratio of a metric at one point and at the point before
  };
  Kind kind{};
  std::vector<MetricOf> metrics;  // value: 1, ratio: 2, closes: step times; points: one each
  std::vector<MetricOf> against;  // points: a metric to be laid along x; empty: `along`
  std::vector<double> along;      // points: values of the swept key
  CauseSet free;                  // closes
  std::string text;               // as the file has it, for a reader
};

struct Assertion {
  ClaimQuantity quantity;
  Dimension dimension = Dimension::ratio;
  std::optional<double> low, high;
};

// Another condition under which the claim is judged too.
struct Condition {
  std::string name;
  std::vector<std::pair<std::size_t, std::vector<Setting>>> changes;  // by scenario
};

struct Claim {
  std::string id, text;
  std::vector<ClaimScenario> scenarios;  // points of a sweep are scenarios, too
  std::vector<Assertion> assertions;     // it holds when all of them do
  std::vector<Condition> conditions;
  std::string missing;  // what the simulator does not model; such a claim cannot be decided
};

}  // namespace stepsim
