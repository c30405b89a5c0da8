#include "workloads/strategy/precision.hpp"

#include "sim/base/words.hpp"

namespace stepsim {
namespace {

Precision::Cast read_cast(const Table& casts, std::string_view name) {
  const auto table = casts.table_if(name);
  if (!table) return {};
  return {.kernels = table->constant<Ratio>("kernels").number(),
          .bytes = table->constant<Bytes>("bytes").number()};
}

Precision::Casts read_casts(const Table& table) {
  return {.input = read_cast(table, "input"),
          .weight = read_cast(table, "weight"),
          .input_back = read_cast(table, "input_back"),
          .weight_back = read_cast(table, "weight_back"),
          .gradient = read_cast(table, "gradient"),
          .gathered = read_cast(table, "gathered"),
          .turned = read_cast(table, "turned")};
}

ProductType type_in(const Table& table, std::string_view key) {
  return read_word<ProductType>(table, key, product_type_names);
}

std::array<bool, products_names.size()> read_products(const Table& table) {
  std::array<bool, products_names.size()> read{};
  for (const Products each :
       read_members<Products>(table, "products", products_names, table.texts("products")))
    read[static_cast<std::size_t>(each)] = true;
  return read;
}

}  // namespace

double bytes_of(ProductType type) {
  switch (type) {
    case ProductType::tf32:
    case ProductType::fp32:
      return 4;
    case ProductType::fp8:
      return 1;
    case ProductType::fp4:
      return 0.5;
    default:
      return bytes_16;
  }
}

bool has_units(const Gpu& gpu, const Precision& precision) {
  if (precision.whole()) return gpu.peak.of(precision.type).has_value();
  if (!precision.narrow()) return true;
  const auto& peak = precision.needs == ProductType::fp4 ? gpu.peak.fp4 : gpu.peak.fp8;
  return peak && (precision.vendor.empty() || precision.vendor == gpu.vendor);
}

Precision read_precision(const Table& table) {
  Precision precision;
  precision.name = table.text("name");
  precision.title = table.text("title");
  precision.type = type_in(table, "type");
  precision.needs = precision.type;
  precision.numbers = std::max(bytes_16, bytes_of(precision.type));
  if (!precision.narrow()) return precision;
  if (table.has("needs")) precision.needs = type_in(table, "needs");
  precision.vendor = table.text_or("vendor", "");
  precision.products = read_products(table);
  precision.rate = table.constant<Ratio>("rate");
  if (table.has("module_call")) {
    precision.module_call = table.constant<Seconds>("module_call");
    precision.module_call_wide = table.constant<Seconds>("module_call_wide");
  }
  precision.casts = read_casts(table.table("casts"));
  const auto eager = table.table_if("eager");
  precision.eager = eager ? read_casts(*eager) : precision.casts;
  precision.saved = table.number("saved", 0, bytes_16);
  precision.weights = table.number("weights", 0, 4);
  precision.once = table.flag_or("once", false);
  precision.collected = table.number("collected", 0, bytes_16);
  precision.gathers = table.flag_or("gathers", false);
  return precision;
}

}  // namespace stepsim
