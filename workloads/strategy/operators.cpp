#include "workloads/strategy/operators.hpp"

namespace stepsim {
namespace {

Operators::Product read_product(const Table& table) {
  Operators::Product product;
  product.operators = table.constant<Ratio>("operators").number();
  product.tiles = read_tiles(table, "tiles");
  product.most_cuts = table.constant<Ratio>("most_cuts").number();
  product.shortest_cut = table.constant<Ratio>("shortest_cut").number();
  return product;
}

}  // namespace

Operators read_operators(const Table& table) {
  Operators all;
  for (std::size_t i = 0; i < operator_names.size(); ++i) {
    const Table one = table.table(operator_names[i]);
    Operators::Count& count = all.counts[i];
    if (one.has("kernels")) count.kernels = one.constant<Ratio>("kernels").number();
    count.bytes = one.constant<Bytes>("bytes").number();
    if (one.has("operators")) count.operators = one.constant<Ratio>("operators").number();
  }
  const Table backward = table.table("backward");
  all.backward = {.attention = backward.constant<Ratio>("attention").number(),
                  .streaming = backward.constant<Ratio>("streaming").number()};
  all.product = read_product(table.table("product"));
  const Table zero = table.table("zero_update");
  all.zero_update = {.norm = zero.constant<Bytes>("norm").number(),
                     .scale_and_copy = zero.constant<Bytes>("scale_and_copy").number(),
                     .host = zero.constant<Bytes>("host").number()};
  const Table allocator = table.table("allocator");
  all.allocator = {.map = allocator.constant<BytesPerSecond>("map").number(),
                   .allocate = allocator.constant<BytesPerSecond>("allocate").number()};
  return all;
}

}  // namespace stepsim
