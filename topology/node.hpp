// A node is one machine: its parts, and the links between them as they are soldered or cabled.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/config.hpp"
#include "sim/base/member_words.hpp"
#include "topology/network.hpp"

namespace stepsim {

enum class PartKind : std::uint8_t { gpu, nvswitch, pcie_switch, nic, socket, dram, nvme };
inline constexpr auto part_names = words_through<PartKind::nvme>();
constexpr std::string_view to_text(PartKind kind) {
  return part_names[static_cast<std::size_t>(kind)];
}

// Only switches and sockets forward: nobody routes through a GPU that is not in the job.
constexpr bool forwards(PartKind kind) {
  return kind == PartKind::nvswitch || kind == PartKind::pcie_switch || kind == PartKind::socket;
}

enum class Wiring : std::uint8_t {
  block,  // member i of the larger side attaches to member floor(i * small / large) of the smaller
  mesh,   // every pair of one kind
};

struct LinkSpec {
  std::string name;
  PartKind from{}, to{};
  Wiring wiring{};
  Constant<BytesPerSecond> bandwidth;               // from -> to
  std::optional<Constant<BytesPerSecond>> reverse;  // to -> from; else the same
  std::optional<Constant<BytesPerSecond>> total;    // both directions together

  friend bool operator==(const LinkSpec&, const LinkSpec&) = default;
};

struct Host {
  int cores = 0;
  Constant<Bytes> dram_capacity;
  std::optional<Constant<Bytes>> drive_capacity;  // of all drives of the node, where it is known
  Constant<Seconds> cpu_adam;  // per 1e9 parameters, one socket with all its cores: DeepSpeed's
  std::optional<Constant<Seconds>> cpu_adam_grace;      // the same by GraceAdam, where that runs
  Constant<Ratio> cpu_adam_bytes;                       // host memory traffic per parameter
  std::optional<Constant<BytesPerSecond>> core_stream;  // that one core keeps up alone
  Constant<Ratio> pageable;                             // share of the pinned copy rate
  Constant<Seconds> copy_start;                         // before the first byte of a copy
  Constant<Ratio> core_speed;  // of the launching thread, against what Python costs were taken on

  friend bool operator==(const Host&, const Host&) = default;
};

struct Node {
  std::string name, title;
  std::string gpu;      // catalogue name
  std::string network;  // catalogue name of the usual one
  // Catalogue names of what such machines have; the first is the one at hand. Empty: the file of
  // the node itself says how fast its host is.
  std::vector<std::string> processors;
  std::array<std::uint32_t, part_names.size()> parts{};
  std::uint32_t trays = 1;  // that boot on their own, and which launchers call nodes
  std::vector<LinkSpec> links;
  Host host;
  // This is what the node draws beside its GPUs.
  struct Draw {
    Constant<Watts> standing;  // while its cores launch kernels
    Constant<Watts> cores;     // more, while all of them compute

    friend bool operator==(const Draw&, const Draw&) = default;
  };
  std::optional<Draw> draw;  // none: its file does not say, and no energy is predicted
  Communication collectives;

  std::uint32_t count(PartKind kind) const { return parts[static_cast<std::size_t>(kind)]; }

  friend bool operator==(const Node&, const Node&) = default;
};

Node read_node(const Table& table);

}  // namespace stepsim
