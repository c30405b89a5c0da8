#include "sim/budget.hpp"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "sim/base/error.hpp"

namespace stepsim {
namespace {

// A process grows by this with each operation of what is replayed.
constexpr double bytes_of_operation = 170;

std::string in_three_digits(double value) {
  return value < 1000 ? fmt::format("{:.3g}", value) : fmt::format("{:.0f}", value);
}

}  // namespace

void require_within(double operations, double budget) {
  if (operations <= budget) return;
  constexpr double million = 1e6;
  throw UserError(
      fmt::format("this takes more than the budget of {} million operations: what tells GPUs apart "
                  "(--fold off, cluster.slow_gpus, slow_links, vary, events) has each written by "
                  "itself; leave it out, take "
                  "fewer GPUs, or allow it with --budget {:.0f}",
                  in_three_digits(budget / million), 10 * budget));
}

void require_budget(double operations, double budget, std::string_view less) {
  if (operations <= budget) return;
  constexpr double million = 1e6;
  throw UserError(fmt::format(
      "this takes {} million operations, about {} GB, more than the budget of {} million: {}, or "
      "allow it with --budget {:.0f}",
      in_three_digits(operations / million), in_three_digits(operations * bytes_of_operation / 1e9),
      in_three_digits(budget / million), less, million * std::ceil(operations / million)));
}

}  // namespace stepsim
