#include "workloads/strategy/operators.hpp"

namespace stepsim {

Operators read_operators(const Table& table) {
  Operators all;
  for (std::size_t i = 0; i < operator_names.size(); ++i) {
    const Table one = table.table(operator_names[i]);
    Operators::Count& count = all.counts[i];
    if (one.has("kernels")) count.kernels = one.constant<Ratio>("kernels").value.value;
    count.bytes = one.constant<Bytes>("bytes").value.value;
    if (one.has("operators")) count.operators = one.constant<Ratio>("operators").value.value;
  }
  const Table backward = table.table("backward");
  all.backward = {.attention = backward.constant<Ratio>("attention").value.value,
                  .streaming = backward.constant<Ratio>("streaming").value.value};
  all.of_product = table.table("product").constant<Ratio>("operators").value.value;
  const Table adamw = table.table("adamw");
  const auto number = [&](std::string_view key) { return adamw.constant<Ratio>(key).value.value; };
  all.adamw = {.of_lists = {number("one_list"), number("two_lists"), number("three_lists")},
               .passes = number("passes"),
               .passes_of_kernel = number("passes_of_kernel")};
  return all;
}

}  // namespace stepsim
