#include "workloads/strategy/weight_format.hpp"

namespace stepsim {
namespace {

FormatWork read_format_work(const Table& format, std::string_view name) {
  const auto table = format.table_if(name);
  if (!table) return {};
  return {.kernels = table->constant<Ratio>("kernels").number(),
          .bytes = table->constant<Bytes>("bytes").number()};
}

}  // namespace

WeightFormat read_format(const Table& table) {
  WeightFormat format;
  format.name = table.text("name");
  format.title = table.text("title");
  format.bytes = table.constant<Bytes>("bytes").number();
  format.forward = read_format_work(table, "forward");
  format.backward = read_format_work(table, "backward");
  format.input = read_format_work(table, "input");
  format.result = read_format_work(table, "result");
  format.copy = table.number_or("copy", 0, 0, 4);
  format.keeps_input = table.flag_or("keeps_input", false);
  format.reads = static_cast<int>(table.integer_or("reads", 0, 0, 16));
  if (table.has("rate")) format.rate = table.constant<Ratio>("rate").number();
  if (table.has("calls")) format.calls = table.constant<Ratio>("calls").number();
  format.stacked = table.flag_or("stacked", false);
  format.narrow = table.flag_or("narrow", false);
  format.uncast = table.flag_or("uncast", false);
  format.cloned = table.flag_or("cloned", false);
  return format;
}

}  // namespace stepsim
