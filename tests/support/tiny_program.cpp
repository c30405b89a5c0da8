#include "tests/support/tiny_program.hpp"

#include <fmt/format.h>

namespace stepsim {
namespace {

Op op_of(OpKind kind, Stream stream, Rank rank, double seconds) {
  return {.kind = kind, .stream = stream, .rank = rank, .seconds = {seconds}};
}

}  // namespace

Platform tiny_platform(std::initializer_list<double> capacities, std::size_t devices) {
  Platform platform;
  for (const double capacity : capacities)
    platform.links.push_back(
        {.name = fmt::format("link{}", platform.links.size()), .capacity = {capacity}});
  for (std::size_t i = 0; i < devices; ++i)
    platform.devices.push_back({.name = fmt::format("device{}", i)});
  return platform;
}

Flow flow_over(std::initializer_list<std::uint32_t> links, double share) {
  Flow flow{.share = share, .wire = share};
  for (const std::uint32_t link : links) flow.path.push_back(LinkId{link});
  return flow;
}

Pattern one_round(double latency, std::vector<Flow> flows, std::vector<Rank> members) {
  return {.name = "pattern",
          .members = std::move(members),
          .rounds = {{.latency = {latency}, .flows = std::move(flows)}}};
}

Op compute_op(Rank rank, double seconds) {
  return op_of(OpKind::compute, Stream::compute, rank, seconds);
}
Op host_op(Rank rank, double seconds) {
  return op_of(OpKind::host, Stream::host, rank, seconds);
}
Op delay_op(Rank rank, double seconds) {
  return op_of(OpKind::delay, Stream::host, rank, seconds);
}
Op join_op(Rank rank) {
  return op_of(OpKind::join, Stream::host, rank, 0);
}

Op traffic_op(PatternId pattern, double bytes, OpKind kind) {
  return {.kind = kind, .stream = Stream::gather, .pattern = pattern, .bytes = {bytes}};
}

}  // namespace stepsim
