#include "analysis/studies/predict/footprint_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
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

std::string signed_size(double bytes) {
  return fmt::format("{}{}", bytes < 0 ? "-" : "", size(std::abs(bytes)));
}

Record failure_record(const MemoryReading& reading) {
  std::optional<Records> failure;
  if (const auto& failed = reading.failed)
    failure = Records{{"moment", "in which", failed->moment},
                      {"operation", "for which", failed->name},
                      {"class", "of what", failed->tensor_class},
                      {"bytes", "that are asked for", Bytes{failed->bytes}},
                      {"allocated_before", "held already", Bytes{failed->before}}};
  return {"failed_allocation", "the first request that fails", failure};
}

Records sum_records(const std::vector<std::pair<std::string, double>>& sums,
                    std::string_view what) {
  Records records;
  for (const auto& [name, bytes] : sums) records.emplace_back(name, what, Bytes{bytes});
  return records;
}

constexpr double rare = 0.05;  // a share below it is said in hundredths, or not at all

}  // namespace

std::string spoken(std::string word) {
  for (char& letter : word)
    if (letter == '_') letter = ' ';
  return word;
}

std::string chance_text(double share) {
  if (share < rare || share > 1 - rare)
    return fmt::format("{:.0f} of 100", 100 * std::clamp(share, 0.01, 0.99));
  return fmt::format("{:.0f} of 10", 10 * std::clamp(share, 0.1, 0.9));
}

std::string verdict_text(const Footprint& f) {
  const Fit fit = f.fit();
  std::vector<std::string> lacks;  // the GPU's memory first
  if (f.margin.value < 0)
    lacks.push_back(fmt::format("{} too much ({} to {})", size(-f.margin.value),
                                signed_size(f.margin.low), signed_size(f.margin.high)));
  if (!f.host_fits())
    lacks.push_back(fmt::format("{} of host memory too much in {}",
                                size(f.host.peak.bytes - f.host_capacity), f.host.peak.phase));
  if (!f.drives_fit())
    lacks.push_back(
        fmt::format("{} too much for the drives of a node", size(f.disk - f.disk_capacity)));
  if (lacks.size() > 1) lacks.front() = "on a GPU " + lacks.front();
  if (!lacks.empty())
    return fmt::format(
        "does not fit, {}{}", fmt::join(lacks, ", and "),
        f.chance() < rare ? "" : fmt::format("; {} such runs fit", chance_text(f.chance())));
  const bool on_host = f.chance_on_host() < f.chance_on_device();
  std::string verdict = fit == Fit::fits
                            ? fmt::format("fits in {}", chance_text(f.chance()))
                            : fmt::format("tight, fits in {}: {}{} decides",
                                          chance_text(f.chance()), on_host ? "host memory in " : "",
                                          on_host ? f.host.peak.phase : f.device.peak.phase);
  if (f.uncounted.empty()) return verdict;
  return fmt::format("without {}, not modelled and in need of more: {}",
                     fmt::join(f.uncounted, ", "), verdict);
}

std::string stage_text(const Footprint& f) {
  if (f.stage.count == 0) return "";
  return fmt::format(", on stage {}, the fullest of {} stages", f.stage.number, f.stage.count);
}

std::string classes_table(const Footprint& f, const std::string& device) {
  TextTable table{{"on each " + device, " size"}};
  for (const auto& [name, bytes] : f.device.peak.classes)
    table.rows.push_back({spoken(name), size(bytes)});
  table.rows.push_back({"allocator slack", size(f.slack)});
  table.rows.push_back({"library buffers", size(f.library)});
  table.rows.push_back({"needed", size(f.needed())});
  table.rows.push_back({"usable", size(f.capacity)});
  return render(table);
}

std::string shown_text(const Footprint& f, std::string_view tool) {
  if (f.margin.value < 0) return "";  // it never comes to show it
  if (f.mapped > 0)
    return fmt::format(
        "nearly full: in each step the allocator gives idle memory back and maps it anew, which "
        "is part of\n\"other\"; between updates {} shows {}\n",
        tool, size(f.shown()));
  // The allocator is asked in the order of the program.
  if (f.reserved < f.device.peak.bytes)
    return fmt::format(
        "{} shows {} ({} to {}), of which {} are context; gathers that come early hold\nmore, {} "
        "in all, as long as there is room\n",
        tool, size(f.shown()), size(f.shown_with(f.layout.low)), size(f.shown_with(f.layout.high)),
        size(f.context), size(f.device.peak.bytes));
  return fmt::format(
      "{} shows {} ({} to {}): the allocator has {} for the {} that are used, and {} are context\n",
      tool, size(f.shown()), size(f.shown_with(f.layout.low)), size(f.shown_with(f.layout.high)),
      size(f.reserved), size(f.device.peak.bytes), size(f.context));
}

std::string moments_table(const Footprint& f) {
  TextTable table{{"moment", " most held"}};
  for (const auto& [name, bytes] : f.device.moments) table.rows.push_back({name, size(bytes)});
  return render(table);
}

std::string failure_text(const Footprint& f) {
  const auto& failed = f.device.failed ? f.device.failed : f.host.failed;
  if (!failed) return "";
  // Sizes are written as the framework says them, in powers of two, and as all other sizes here.
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

Records footprint_records(const Footprint& f) {
  Records classes = sum_records(f.device.peak.classes, "one key for each class of tensors");
  classes.emplace_back("allocator_slack", "held beyond what is used", Bytes{f.slack});
  classes.emplace_back("library", "taken by libraries", Bytes{f.library});
  const auto stage = f.stage.count > 0 ? std::optional(f.stage.number) : std::nullopt;
  const auto drives = f.disk_capacity > 0 ? std::optional(Bytes{f.disk_capacity}) : std::nullopt;
  const Records host{{"peak_bytes", "the most that a node holds", Bytes{f.host.peak.bytes}},
                     {"capacity_bytes", "that it has", Bytes{f.host_capacity}},
                     {"moment", "of the peak", f.host.peak.phase},
                     {"pinned_bytes", "between steps", Bytes{f.pinned}},
                     {"pageable_bytes", "between steps", Bytes{f.pageable}},
                     {"disk_bytes", "on the drives of a node", Bytes{f.disk}},
                     {"disk_capacity_bytes", "of these drives", drives},
                     failure_record(f.host)};
  return {
      {"peak_memory_bytes", "needed of a GPU, with slack and libraries", Bytes{f.needed()}},
      {"capacity_bytes", "what a framework can allocate", Bytes{f.capacity}},
      {"verdict", "fits: at least 9 in 10 such runs do, tight: at least half, or oom",
       to_text(f.fit())},
      {"chance", "that it fits: the share of such runs that do", f.chance(), Measure::share},
      {"chance_on_host", "the same of a node's host memory alone", f.chance_on_host(),
       Measure::share},
      {"margin_bytes", "left over, or missing", Bytes{f.margin.value}},
      {"margin_interval_bytes", "with the constants at their worse and better ends", f.margin,
       Measure::bytes},
      {"stage", "the fullest one of a pipeline", stage},
      {"phase", "of the peak", f.device.peak.phase},
      {"operation", "at the peak", f.device.peak.name},
      {"classes", "what is held at the peak", classes},
      {"shown_by_device_bytes", "what nvidia-smi shows", Bytes{f.shown()}},
      {"shown_by_device_interval_bytes", "nine in ten of layouts",
       Spread{f.shown(), f.shown_with(f.layout.low), f.shown_with(f.layout.high)}, Measure::bytes},
      {"mapped_before_update_bytes",
       "when an update begins, where each step gives memory back; else null",
       f.mapped > 0 ? std::optional(Bytes{f.mapped}) : std::nullopt},
      {"reserved_bytes", "that the allocator has after two steps, used or not", Bytes{f.reserved}},
      {"context_bytes", "of the framework's context", Bytes{f.context}},
      {"moments", "the most held in each moment",
       sum_records(f.device.moments, "one key for each moment")},
      failure_record(f.device),
      {"host", "memory of a node's host", host}};
}

Footprint footprint_sample() {
  Footprint f;
  f.device.peak.classes = f.device.moments = {{"NAME", 0}};
  f.device.failed = f.host.failed = FailedAllocation{};
  f.stage.count = 1;
  f.disk_capacity = 1;
  return f;
}

}  // namespace stepsim
