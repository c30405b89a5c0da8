// A user's file: which model, on which cluster, under which stack, job and strategy.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "topology/catalog.hpp"
#include "workloads/model.hpp"
#include "workloads/stack.hpp"
#include "workloads/strategy.hpp"

namespace stepsim {

// What somebody observed when running it.
struct Measured {
  std::optional<Seconds> wall;
  std::optional<double> tokens_per_second_per_gpu;
  std::optional<Seconds> step_time;
  std::optional<Bytes> memory;
  std::string source;
};

struct Scenario {
  std::string name;
  std::string text;  // as read
  Model model;
  Cluster cluster;
  Stack stack;
  Job job;
  Strategy strategy;
  Measured measured;
  std::vector<NamedConstant> constants;  // everything a prediction rests on
};

inline constexpr Shelf stack_shelf{"workloads/stacks", "stack"};

// A change from the command line: {"strategy.zero", "2"}.
using Setting = std::pair<std::string, std::string>;

// Throws UserError with every problem of the file.
Scenario load_scenario(const std::string& data, const std::string& path,
                       std::span<const Setting> settings = {});

}  // namespace stepsim
