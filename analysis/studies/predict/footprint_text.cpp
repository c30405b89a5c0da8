#include "analysis/studies/predict/footprint_text.hpp"

#include <fmt/format.h>

#include <cmath>

#include "sim/base/table.hpp"

namespace stepsim {
namespace {

std::string size(double bytes) {
  return to_text(Bytes{bytes});
}

// Frameworks report in powers of two.
std::string gibibytes(double bytes) {
  return fmt::format("{:.2f} GiB", bytes / 0x1p30);
}

// A word of the code for a reader: "master_weights" -> "master weights".
std::string spoken(std::string word) {
  for (char& letter : word)
    if (letter == '_') letter = ' ';
  return word;
}

std::string signed_size(double bytes) {
  return fmt::format("{}{}", bytes < 0 ? "-" : "", size(std::abs(bytes)));
}

void write_failure(JsonWriter& json, const MemoryReading& reading) {
  json.key("failed_allocation");
  if (!reading.failed) {
    json.null();
    return;
  }
  json.begin_object()
      .member("moment", reading.failed->moment)
      .member("operation", reading.failed->name)
      .member("class", reading.failed->tensor_class)
      .member("bytes", reading.failed->bytes)
      .member("allocated_before", reading.failed->before)
      .end_object();
}

void write_sums(JsonWriter& json, const std::vector<std::pair<std::string, double>>& sums) {
  for (const auto& [name, bytes] : sums) json.member(name, bytes);
}

}  // namespace

std::string verdict_text(const Footprint& f) {
  if (!f.host_fits())
    return fmt::format("does not fit: {} of host memory too much in {}",
                       size(f.host.peak.bytes - f.host_capacity), f.host.peak.phase);
  if (!f.drives_fit())
    return fmt::format("does not fit: {} too much for the drives of a node",
                       size(f.disk - f.disk_capacity));
  const std::string range =
      fmt::format("{} to {}", signed_size(f.margin.low), signed_size(f.margin.high));
  if (f.fit() == Fit::oom)
    return fmt::format("does not fit, {} too much ({})", size(-f.margin.value), range);
  return fmt::format("{}, {} left ({})", f.fit() == Fit::tight ? "fits, but tightly" : "fits",
                     size(f.margin.value), range);
}

std::string stage_text(const Footprint& f) {
  if (f.stage.count == 0) return "";
  return fmt::format(", on stage {}, the fullest of {} stages", f.stage.number, f.stage.count);
}

std::string classes_table(const Footprint& f, const std::string& device) {
  TextTable table{{"on each " + device, "size"}, {Align::left, Align::right}, {}};
  for (const auto& [name, bytes] : f.device.peak.classes)
    table.rows.push_back({spoken(name), size(bytes)});
  table.rows.push_back({"allocator slack", size(f.slack)});
  table.rows.push_back({"library buffers", size(f.library)});
  table.rows.push_back({"needed", size(f.needed())});
  table.rows.push_back({"usable", size(f.capacity)});
  return render(table);
}

std::string shown_text(const Footprint& f) {
  return fmt::format(
      "the device's own tool shows {}: with {} of context{}\n", size(f.shown()), size(f.context),
      f.idle > 0 ? fmt::format(", and {} kept for other streams", size(f.idle)) : "");
}

std::string moments_table(const Footprint& f) {
  TextTable table{{"moment", "most held"}, {Align::left, Align::right}, {}};
  for (const auto& [name, bytes] : f.device.moments) table.rows.push_back({name, size(bytes)});
  return render(table);
}

std::string failure_text(const Footprint& f) {
  const auto& failed = f.device.failed ? f.device.failed : f.host.failed;
  if (!failed) return "";
  // As the framework says it, in powers of two, and as all other sizes here.
  const auto both = [](double bytes) {
    return fmt::format("{} ({})", size(bytes), gibibytes(bytes));
  };
  return fmt::format("{}: {} for {} in {}, with {} allocated before\n",
                     f.device.failed ? "what fails first" : "what fails first on the host",
                     both(failed->bytes), spoken(failed->tensor_class), failed->moment,
                     failed->before > 0 ? both(failed->before) : "nothing");
}

std::string host_text(const Footprint& f) {
  if (f.pinned + f.pageable + f.disk == 0 && f.host_fits()) return "";
  std::string text = fmt::format(
      "host memory of a node: {} pinned and {} pageable between steps, "
      "at most {} of {} in {}\n",
      size(f.pinned), size(f.pageable), size(f.host.peak.bytes), size(f.host_capacity),
      f.host.peak.phase);
  if (f.disk > 0)
    text += fmt::format(
        "drives of a node: {}{}\n", size(f.disk),
        f.disk_capacity > 0 ? fmt::format(" of {}", size(f.disk_capacity)) : ", of no stated size");
  return text;
}

void write_footprint(JsonWriter& json, const Footprint& f) {
  json.member("peak_memory_bytes", f.needed())
      .member("capacity_bytes", f.capacity)
      .member("verdict", to_text(f.fit()))
      .member("margin_bytes", f.margin.value);
  json.key("margin_interval_bytes")
      .begin_array()
      .value(f.margin.low)
      .value(f.margin.high)
      .end_array();
  if (f.stage.count > 0) json.member("stage", static_cast<double>(f.stage.number));
  json.member("phase", f.device.peak.phase).member("operation", f.device.peak.name);
  json.key("classes").begin_object();
  write_sums(json, f.device.peak.classes);
  json.member("allocator_slack", f.slack).member("library", f.library).end_object();
  json.member("shown_by_device_bytes", f.shown())
      .member("kept_for_other_streams_bytes", f.idle)
      .member("context_bytes", f.context);
  json.key("moments").begin_object();
  write_sums(json, f.device.moments);
  json.end_object();
  write_failure(json, f.device);
  json.key("host")
      .begin_object()
      .member("peak_bytes", f.host.peak.bytes)
      .member("capacity_bytes", f.host_capacity)
      .member("moment", f.host.peak.phase)
      .member("pinned_bytes", f.pinned)
      .member("pageable_bytes", f.pageable)
      .member("disk_bytes", f.disk);
  json.key("disk_capacity_bytes");
  if (f.disk_capacity > 0)
    json.value(f.disk_capacity);
  else
    json.null();
  write_failure(json, f.host);
  json.end_object();
}

}  // namespace stepsim
