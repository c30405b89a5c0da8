#include "topology/gpu.hpp"

#include <algorithm>
#include <charconv>

namespace stepsim {
namespace {

Constant<Ratio> share(const Table& table, std::string_view key) {
  Constant<Ratio> value = table.constant<Ratio>(key);
  if (value.low.value <= 0 || value.high.value > 1)
    table.problem(key, "expected a share above 0 and at most 1");
  return value;
}

template <class Unit>
std::optional<Constant<Unit>> if_there(const Table& table, std::string_view key) {
  if (!table.has(key)) return std::nullopt;
  return table.constant<Unit>(key);
}

Gpu::Peak read_peak(const Table& table) {
  Gpu::Peak peak;
  peak.bf16 = table.constant<FlopsPerSecond>("bf16");
  peak.tf32 = table.constant<FlopsPerSecond>("tf32");
  peak.fp8 = if_there<FlopsPerSecond>(table, "fp8");
  peak.fp4 = if_there<FlopsPerSecond>(table, "fp4");
  peak.fp32 = if_there<FlopsPerSecond>(table, "fp32");
  return peak;
}

// Reads "256x128": rows and width.
std::optional<Tile> tile_of(std::string_view text) {
  int rows = 0, width = 0;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, rows);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != 'x') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, width);
  if (second.ec != std::errc() || second.ptr != end || rows < 1 || width < 1) return std::nullopt;
  return Tile{static_cast<double>(rows), static_cast<double>(width)};
}

std::optional<Gpu::Gemm::Grouped> read_grouped(const Table& gemm) {
  const auto table = gemm.table_if("grouped");
  if (!table) return std::nullopt;
  return Gpu::Gemm::Grouped{.tiles = read_tiles(*table, "tiles"),
                            .operands = table->constant<BytesPerSecond>("operands")};
}

Gpu::Attention::Kernel read_kernel(const Table& table) {
  return {.forward = table.constant<FlopsPerSecond>("forward"),
          .backward = table.constant<FlopsPerSecond>("backward"),
          .forward_overhead = table.constant<Ratio>("forward_overhead"),
          .backward_overhead = table.constant<Ratio>("backward_overhead"),
          .wide = table.constant<Ratio>("wide"),
          .backward_tail = if_there<Ratio>(table, "backward_tail")};
}

std::optional<Gpu::Attention::Kernel> read_later(const Table& attention) {
  const auto table = attention.table_if("later");
  if (!table) return std::nullopt;
  return read_kernel(*table);
}

std::string name_of_later(const Table& attention) {
  const auto table = attention.table_if("later");
  return table ? table->text_or("name", "") : "";
}

std::optional<Gpu::Draw> read_draw(const Table& gpu) {
  const auto table = gpu.table_if("draw");
  if (!table) return std::nullopt;
  Gpu::Draw draw{.idle = table->constant<Watts>("idle"),
                 .memory = table->constant<Watts>("memory"),
                 .compute = table->constant<Watts>("compute"),
                 .communication = table->constant<Watts>("communication")};
  for (const auto& [key, each] : {std::pair{"memory", &draw.memory},
                                  {"compute", &draw.compute},
                                  {"communication", &draw.communication}})
    if (each->high < draw.idle.low) table->problem(key, "is less than the board draws idle");
  return draw;
}

std::optional<Gpu::Attention::Settling> read_settling(const Table& attention) {
  const auto table = attention.table_if("settling");
  if (!table) return std::nullopt;
  return Gpu::Attention::Settling{.time = table->constant<Seconds>("time"),
                                  .share = share(*table, "share")};
}

}  // namespace

std::optional<FlopsPerSecond> Gpu::Peak::of(ProductType type) const {
  const auto value = [](const auto& rate) -> std::optional<FlopsPerSecond> {
    if (!rate) return std::nullopt;
    return rate->value;
  };
  switch (type) {
    case ProductType::tf32:
      return tf32.value;
    case ProductType::fp8:
      return value(fp8);
    case ProductType::fp4:
      return value(fp4);
    case ProductType::fp32:
      return value(fp32);
    default:
      return bf16.value;
  }
}

std::vector<Tile> read_tiles(const Table& table, std::string_view key) {
  std::vector<Tile> tiles;
  for (const std::string& text : table.texts(key)) {
    if (const auto tile = tile_of(text))
      tiles.push_back(*tile);
    else
      table.problem(key, "expected rows x width such as 256x128, found \"" + text + "\"");
  }
  if (tiles.empty()) table.problem(key, "expected at least one");
  return tiles;
}

// Both are drawn and given apart: a low capacity leaves less to use, whatever the file says of
// that.
void hold_within_capacity(const Table& table, Gpu::Memory& memory) {
  const auto& capacity = memory.capacity;
  auto& usable = memory.usable;
  const bool follows = capacity.grade == Grade::given && usable.grade != Grade::given;
  if (!follows && usable.high > capacity.high) table.problem("usable", "is more than the capacity");
  usable.value = std::min(usable.value, capacity.value);
  usable.low = std::min(usable.low, usable.value);
  usable.high = std::min(usable.high, capacity.high);
}

Gpu read_gpu(const Table& table) {
  Gpu gpu;
  gpu.name = table.text("name");
  gpu.title = table.text("title");
  gpu.vendor = table.choice("vendor", {"amd", "nvidia"});
  const Table memory = table.table("memory");
  gpu.memory = {.capacity = memory.constant<Bytes>("capacity"),
                .usable = memory.constant<Bytes>("usable"),
                .context = memory.constant<Bytes>("context"),
                .library = memory.constant<Bytes>("library"),
                .stream = memory.constant<BytesPerSecond>("stream")};
  gpu.peak = read_peak(table.table("peak"));
  const Table gemm = table.table("gemm");
  gpu.gemm = {.start = gemm.constant<Seconds>("start"),
              .rate = gemm.constant<FlopsPerSecond>("rate"),
              .bandwidth = gemm.constant<BytesPerSecond>("bandwidth"),
              .sustained = share(gemm, "sustained"),
              .fill = gemm.constant<Ratio>("fill"),
              .small_tile = share(gemm, "small_tile"),
              .unaligned = if_there<FlopsPerSecond>(gemm, "unaligned"),
              .grouped = read_grouped(gemm)};
  const Table attention = table.table("attention");
  gpu.attention = {.flash = read_kernel(attention),
                   .later = read_later(attention),
                   .later_name = name_of_later(attention),
                   .head_overhead = attention.constant<Ratio>("head_overhead"),
                   .tail = attention.constant<Ratio>("tail"),
                   .settling = read_settling(attention)};
  const Table elementwise = table.table("elementwise");
  gpu.elementwise = {.start = elementwise.constant<Seconds>("start"),
                     .bandwidth = elementwise.constant<BytesPerSecond>("bandwidth"),
                     .cache = {}};
  if (const auto cache = elementwise.table_if("cache"))
    gpu.elementwise.cache = {.capacity = cache->constant<Bytes>("capacity"),
                             .bandwidth = cache->constant<BytesPerSecond>("bandwidth"),
                             .found = share(*cache, "found")};
  const Table interference = table.table("interference");
  gpu.interference = {.compute = share(interference, "compute"),
                      .collective = share(interference, "collective")};
  const Table launch = table.table("host_launch");
  gpu.host_launch = {.eager_op = launch.constant<Seconds>("eager_op"),
                     .queue = launch.constant<Ratio>("queue")};
  gpu.units = static_cast<int>(table.integer("units", 1, 100000));
  gpu.power = table.constant<Watts>("power");
  gpu.draw = read_draw(table);
  // What the board lacks is read where a strategy asks for it: scenarios/read/lacks.hpp.
  if (table.has("lacks")) table.has("emulated_bf16");
  hold_within_capacity(memory, gpu.memory);
  if (gpu.gemm.rate.value > gpu.peak.bf16.value) gemm.problem("rate", "is above the bf16 peak");
  return gpu;
}

}  // namespace stepsim
