// Communication is what a collective library costs on a fabric: one fixed time, a time per protocol
// step, and the share of a link's rate that a protocol turns into payload.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/config.hpp"

namespace stepsim {

struct Protocol {
  std::string name;
  Constant<Seconds> step;      // per algorithm step (inside a node) or network hop
  Constant<Ratio> efficiency;  // payload per byte on the wire

  friend bool operator==(const Protocol&, const Protocol&) = default;
};

struct Communication {
  std::string library;
  Constant<Seconds> launch;
  std::vector<Protocol> protocols;
  Constant<Ratio> exchange;  // share of the rate kept when every rank sends to every other
  struct InSwitch {          // the switch reduces and multicasts
    Constant<Seconds> step;
    Constant<Ratio> efficiency;

    friend bool operator==(const InSwitch&, const InSwitch&) = default;
  };
  std::optional<InSwitch> nvls;
  // Multiprocessors that a collective runs on: in a node, or for each of a node's ports in use.
  std::optional<Constant<Ratio>> channels;
  // This lists for each kind of collective the algorithms that the library considers here.
  std::vector<std::pair<std::string, std::vector<std::string>>> algorithms;

  friend bool operator==(const Communication&, const Communication&) = default;
};

inline const std::vector<std::string> collective_kinds{"all_reduce", "all_gather", "reduce_scatter",
                                                       "all_to_all", "broadcast",  "send_recv"};

Communication read_communication(const Table& table);

// Empty when the fabric names none for this kind.
std::vector<std::string> algorithms_for(const Communication& communication, std::string_view kind);

}  // namespace stepsim
