#include "topology/platform.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "sim/base/whole_file.hpp"
#include "topology/catalog.hpp"

namespace stepsim {
namespace {

std::string property(const PlatformFile::Host& host, std::string_view key) {
  for (const auto& [name, value] : host.properties)
    if (name == key) return value;
  return "";
}

[[noreturn]] void reject(const PlatformFile& file, const PlatformFile::Host& host,
                         std::string_view why) {
  throw UserError({{file.file, host.line, "host", fmt::format("\"{}\": {}", host.name, why)}});
}

std::string gpu_of_node(const Catalogue& data, const std::string& node) {
  return open_entry(data, node_shelf, node).root().text("gpu");
}

// Returns the catalogue's node with most GPUs of this kind; of equally large ones the first by
// name.
std::string largest_node_of(const Catalogue& data, const std::string& gpu) {
  std::string best;
  std::int64_t most = 0;
  for (const std::string& name : names_on(data, node_shelf)) {
    const std::string said = heading_in(file_of(data, node_shelf, name), "gpu");
    if (!said.empty() && said != gpu) continue;
    const Document document = open_entry(data, node_shelf, name);
    const std::int64_t gpus = document.root().table("parts").integer("gpu", 1, 1024);
    if (document.root().text("gpu") != gpu || gpus <= most) continue;
    best = name;
    most = gpus;
  }
  return best;
}

// This is what a host says of itself; nothing when both are empty.
struct HostKind {
  std::string gpu, node;

  friend bool operator==(const HostKind&, const HostKind&) = default;
};

std::string text_of_kind(const HostKind& kind) {
  if (kind.gpu.empty()) return fmt::format("node {}", kind.node);
  return fmt::format("gpu {}{}", kind.gpu, kind.node.empty() ? "" : " in " + kind.node);
}

HostKind kind_of(const Catalogue& data, const PlatformFile& file, const PlatformFile::Host& host) {
  HostKind kind{property(host, "gpu"), property(host, "node")};
  if (kind.gpu.empty() && kind.node.empty()) {
    std::vector<std::string> names;
    names.reserve(host.properties.size());
    for (const auto& [name, value] : host.properties) names.push_back(name);
    reject(file, host,
           fmt::format("expected a property \"gpu\" or \"node\", found {}",
                       names.empty() ? "none" : fmt::format("\"{}\"", fmt::join(names, "\", \""))));
  }
  for (const auto& [shelf, name] : {std::pair{gpu_shelf, kind.gpu}, {node_shelf, kind.node}})
    if (!name.empty() && !is_on(data, shelf, name))
      reject(file, host,
             fmt::format("no {} \"{}\"{}", shelf.singular, name,
                         did_you_mean(name, names_on(data, shelf), shelf.plural())));
  return kind;
}

// Most readings are of the same file and text as the one before.
struct LastPlatform {
  std::string text;  // after the path
  PlatformFile file;
};

PlatformFile known_platform(const Catalogue& data, const std::string& path) {
  LastPlatform& last = data.kept<LastPlatform>();
  std::string text = path + '\n' + read_text(path);
  if (last.text != text) last = {std::move(text), read_platform_file(path)};
  return last.file;
}

}  // namespace

PlatformMachine machine_of(const Catalogue& data, const std::string& path,
                           const std::string& node) {
  PlatformMachine machine{.file = known_platform(data, path), .node = {}};
  const PlatformFile::Host& first = machine.file.hosts.front();
  const HostKind kind = kind_of(data, machine.file, first);
  for (const PlatformFile::Host& host : machine.file.hosts)
    if (const HostKind own = kind_of(data, machine.file, host); own != kind)
      reject(machine.file, host,
             fmt::format("expected {} as \"{}\" of line {}, found {}", text_of_kind(kind),
                         first.name, first.line, text_of_kind(own)));
  machine.of_gpus = !kind.gpu.empty();
  machine.node = !kind.node.empty() ? kind.node
                 : !node.empty()    ? node
                                    : largest_node_of(data, kind.gpu);
  if (machine.node.empty())
    reject(machine.file, first,
           fmt::format("no node of the catalogue has a {}: write one that has", kind.gpu));
  if (machine.of_gpus && gpu_of_node(data, machine.node) != kind.gpu)
    reject(machine.file, first,
           fmt::format("{} has no {}, but {}", machine.node, kind.gpu,
                       gpu_of_node(data, machine.node)));
  return machine;
}

NetworkRoutes ways_of(const PlatformMachine& machine, std::span<const std::uint32_t> places) {
  const PlatformFile& file = machine.file;
  NetworkRoutes made;
  made.has_ports = false;
  made.of_gpus = machine.of_gpus;
  for (const PlatformFile::Line& line : file.lines)
    made.lines.push_back({line.name, line.bandwidth});
  for (const std::uint32_t from : places) {
    made.row_of.push_back(static_cast<std::uint32_t>(made.row_of.size()));
    made.starts.push_back(file.hosts[from].name);
    for (const std::uint32_t to : places) {
      made.first.push_back(static_cast<std::uint32_t>(made.crossed.size()));
      const PlatformFile::Way& way = file.ways[from * file.hosts.size() + to];
      // A link that is not shared limits each way by itself: where it is the narrowest, the way
      // gets a link of its own.
      double narrowest = std::numeric_limits<double>::infinity();
      const PlatformFile::Line* pipe = nullptr;
      for (const std::uint32_t line : way.lines) {
        if (file.lines[line].shared) made.crossed.push_back(line);
        if (file.lines[line].bandwidth.value >= narrowest) continue;
        narrowest = file.lines[line].bandwidth.value;
        pipe = file.lines[line].shared ? nullptr : &file.lines[line];
      }
      if (pipe != nullptr) {
        made.crossed.push_back(static_cast<std::uint32_t>(made.lines.size()));
        made.lines.push_back(
            {fmt::format("{}.{}>{}", pipe->name, file.hosts[from].name, file.hosts[to].name),
             pipe->bandwidth});
      }
      made.latency = std::max(made.latency, way.latency);
    }
  }
  made.first.push_back(static_cast<std::uint32_t>(made.crossed.size()));
  return made;
}

}  // namespace stepsim
