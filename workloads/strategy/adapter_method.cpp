#include "workloads/strategy/adapter_method.hpp"

#include <algorithm>

namespace stepsim {
namespace {

AdapterSides read_sides(const Table& table, std::string_view key) {
  AdapterSides sides;
  const std::vector<std::string> known(adapter_side_names.begin(), adapter_side_names.end());
  for (const std::string& word : table.texts(key)) {
    const auto place = std::find(known.begin(), known.end(), word);
    if (place == known.end())
      table.problem(key, "expected " + one_of(known) + ", found \"" + word + "\"" +
                             did_you_mean(word, known));
    else
      sides.push_back(static_cast<AdapterSide>(place - known.begin()));
  }
  return sides;
}

AdapterProduct read_adapter_product(const Table& table) {
  AdapterProduct product{.name = table.text("name"),
                         .sides = read_sides(table, "sides"),
                         .detached = table.flag_or("detached", false),
                         .frozen = table.flag_or("frozen", false),
                         .dropout = table.flag_or("dropout", false)};
  if (product.sides.size() != 3)
    table.problem("sides", "a product has three sides: rows, depth and width");
  product.sides.resize(3, AdapterSide::one);
  return product;
}

AdapterStream read_stream(const Table& table) {
  return {.sides = read_sides(table, "sides"),
          .kernels = table.constant<Ratio>("kernels").number(),
          .forward = table.constant<Ratio>("forward").number(),
          .backward = table.number_or("backward", 0, 0, 100),
          .keeps = table.flag_or("keeps", false)};
}

}  // namespace

AdapterMethod read_adapter_method(const Table& table) {
  AdapterMethod method;
  method.name = table.text("name");
  method.title = table.text("title");
  method.tensors.clear();
  for (const Table& tensor : table.tables("tensors"))
    method.tensors.push_back(read_sides(tensor, "sides"));
  method.products.clear();
  for (const Table& product : table.tables("products"))
    method.products.push_back(read_adapter_product(product));
  for (const Table& stream : table.tables("streams")) method.streams.push_back(read_stream(stream));
  method.adds = table.flag_or("adds", true);
  method.calls = table.constant<Ratio>("calls").number();
  method.unpacks = table.flag_or("unpacks", false);
  return method;
}

}  // namespace stepsim
