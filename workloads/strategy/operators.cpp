#include "workloads/strategy/operators.hpp"

#include <charconv>

namespace stepsim {
namespace {

// "256x128": rows and width.
std::optional<Operators::Product::Tile> tile_of(std::string_view text) {
  int rows = 0, width = 0;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, rows);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != 'x') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, width);
  if (second.ec != std::errc() || second.ptr != end || rows < 1 || width < 1) return std::nullopt;
  return Operators::Product::Tile{static_cast<double>(rows), static_cast<double>(width)};
}

Operators::Product read_product(const Table& table) {
  Operators::Product product;
  product.operators = table.constant<Ratio>("operators").number();
  for (const std::string& text : table.texts("tiles")) {
    if (const auto tile = tile_of(text))
      product.tiles.push_back(*tile);
    else
      table.problem("tiles", "expected rows x width such as 256x128, found \"" + text + "\"");
  }
  if (product.tiles.empty()) table.problem("tiles", "expected at least one");
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
