// A program is an append-only graph of operations. An operation may depend only on earlier ones, so
// ids are a topological order and a cycle cannot be built.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/labels.hpp"
#include "sim/traffic.hpp"

namespace stepsim {

enum class OpId : std::uint32_t {};
enum class PatternId : std::uint32_t {};
enum class NameId : std::uint32_t {};

constexpr std::size_t index(OpId id) {
  return static_cast<std::size_t>(id);
}
constexpr std::size_t index(PatternId id) {
  return static_cast<std::size_t>(id);
}
constexpr std::size_t index(NameId id) {
  return static_cast<std::size_t>(id);
}

inline constexpr PatternId no_pattern{std::numeric_limits<std::uint32_t>::max()};

struct Op {
  OpKind kind = OpKind::join;
  Stream stream = Stream::host;
  Phase phase = Phase::other;
  Cause cause = Cause::other;
  Rank rank = 0;  // of a collective: its first member
  std::int16_t layer = -1;
  std::uint8_t streaming = 0;  // compute: parts of its time in which memory binds, of 32
  std::int32_t micro_batch = -1;
  NameId name{};
  PatternId pattern = no_pattern;  // collective, transfer, cpu
  Seconds seconds{};               // compute, host, delay
  Bytes bytes{};                   // collective, transfer, cpu: what the pattern's shares refer to
  Flops flops{};                   // useful work, for utilisation figures
};

// A pool is where bytes live. The memory timeline is a sum over these.
enum class Pool : std::uint8_t { device, pinned, pageable, disk };
inline constexpr std::array<std::string_view, 4> pool_names{"device", "pinned", "pageable", "disk"};

struct MemoryEffect {
  OpId op{};
  bool at_start = true;  // else at the finish
  Pool pool = Pool::device;
  Rank rank = 0;
  NameId tensor_class{};
  double bytes = 0;  // negative: freed
};

// A label says what an operation is called, and when it runs.
struct OpLabel {
  NameId name{};
  Phase phase = Phase::other;
};

// These sums hold what operations add up to, cause by cause: the seconds of those that carry no
// traffic, and for each pattern how often it is used, and for how many bytes.
struct OpSums {
  struct Traffic {
    double uses = 0, bytes = 0;
  };
  ByCause<double> seconds{};
  double kernels = 0;                     // seconds of those that compute on the first rank
  std::vector<ByCause<Traffic>> traffic;  // [pattern]

  void add(const Op& op);
};

// A neighbour is traffic of another job that comes again and again while the program runs: the
// flows of the pattern's first round begin `at`, and again after each period, or later when the
// ones before have ended.
struct Neighbour {
  PatternId pattern = no_pattern;
  Bytes bytes{};
  double at = 0;      // s
  double period = 0;  // s; 0: once
};

class OpGraph {
 public:
  NameId name(std::string_view text);
  PatternId pattern(Pattern pattern);

  void reserve(std::size_t operations, std::size_t edges, std::size_t effects);
  // Keeps of operations to come only their labels: with these memory can be followed in program
  // order, but nothing can be replayed. They take a tenth of the bytes.
  void keep_labels_only() { labels_only_ = true; }
  bool has_labels_only() const { return labels_only_; }
  // Keeps of operations to come only what they add up to.
  void keep_sums_only() { sums_only_ = true; }
  OpSums sums() const;
  OpId add(const Op& op, std::span<const OpId> after);
  OpId add(const Op& op, std::initializer_list<OpId> after) {
    return add(op, std::span(after.begin(), after.size()));
  }
  void allocate(const MemoryEffect& effect) {
    if (!sums_only_) memory_.push_back(effect);
  }
  void beside(const Neighbour& neighbour) { neighbours_.push_back(neighbour); }
  // Makes the operation an instant from now on: it waits as before, and costs nothing.
  void make_free(OpId id);
  // Makes all work and latencies take `factor` times as long; flows that are capped are slower by
  // it.
  void stretch(double factor);

  std::size_t size() const {
    return labels_only_ ? labels_.size() : sums_only_ ? summed_ : ops_.size();
  }
  OpLabel label(OpId id) const {
    if (labels_only_) return labels_[index(id)];
    return {ops_[index(id)].name, ops_[index(id)].phase};
  }
  const Op& operator[](OpId id) const { return ops_[index(id)]; }
  std::span<const Op> ops() const { return ops_; }
  std::span<const OpId> predecessors(OpId id) const {
    return std::span(edges_).subspan(offsets_[index(id)],
                                     offsets_[index(id) + 1] - offsets_[index(id)]);
  }
  // The rows are compressed: predecessors of op i are edges()[offsets()[i] .. offsets()[i + 1]).
  std::span<const OpId> edges() const { return edges_; }
  std::span<const std::uint64_t> offsets() const { return offsets_; }
  std::span<const std::string> names() const { return names_; }
  std::span<const Pattern> patterns() const { return patterns_; }
  std::span<const MemoryEffect> memory() const { return memory_; }
  std::span<const Neighbour> neighbours() const { return neighbours_; }

 private:
  bool labels_only_ = false;
  std::vector<OpLabel> labels_;  // instead of operations and edges
  bool sums_only_ = false;
  std::size_t summed_ = 0;  // operations
  OpSums sums_;             // of these
  std::vector<Op> ops_;
  std::vector<OpId> edges_;
  std::vector<std::uint64_t> offsets_{0};
  std::vector<std::string> names_;
  std::unordered_map<std::string, NameId> name_ids_;  // looked up, never iterated
  std::array<NameId, 256> lately_{};                  // by where a text stands: most come again
  std::vector<Pattern> patterns_;
  std::vector<MemoryEffect> memory_;
  std::vector<Neighbour> neighbours_;
};

// Successors are the edges turned round, in id order: they list which operations wait for an
// operation.
class Successors {
 public:
  explicit Successors(const OpGraph& graph);
  std::span<const OpId> of(OpId id) const {
    return std::span(targets_).subspan(offsets_[index(id)],
                                       offsets_[index(id) + 1] - offsets_[index(id)]);
  }

 private:
  std::vector<std::uint64_t> offsets_;
  std::vector<OpId> targets_;
};

// The most that one flow of the program puts on the wire.
Bytes largest_flow(const OpGraph& graph);

// Throws std::logic_error when an operation names a rank, link or pattern that the platform or the
// graph does not have, or a quantity that is no finite number: SimGrid would abort on it.
void validate(const OpGraph& graph, const Platform& platform);

}  // namespace stepsim
