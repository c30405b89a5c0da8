#include "analysis/report/memory_viz.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "analysis/placement.hpp"
#include "analysis/requests.hpp"
#include "sim/base/pickle.hpp"

// The form is that of torch/csrc/cuda/memory_snapshot.cpp of github.com/pytorch/pytorch @0006736.
namespace stepsim {
namespace {

// One request is taken or given back.
struct Event {
  std::size_t change = 0, request = 0;
  bool takes = false;
};

std::vector<Event> events_of(const std::vector<Request>& requests) {
  std::vector<Event> events;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    events.push_back({requests[i].taken, i, true});
    if (requests[i].given != never) events.push_back({requests[i].given, i, false});
  }
  std::ranges::stable_sort(events, {}, &Event::change);
  return events;
}

std::string_view to_text(MemoryPlacement::Change::What what) {
  constexpr std::array<std::string_view, 5> names{"segment_alloc", "segment_free", "segment_map",
                                                  "segment_unmap", "oom"};
  return names[static_cast<std::size_t>(what)];
}

class SnapshotWriter {
 public:
  SnapshotWriter(const RankMemory& memory, const OpGraph& graph)
      : memory_(memory),
        graph_(graph),
        requests_(requests_of(graph, memory.timeline)),
        addresses_(requests_.size()),
        placement_(static_cast<std::uint64_t>(memory.room), memory.expandable_segments) {}

  MemoryViz write() {
    pickle_.begin_dict().value("device_traces").begin_list().begin_list();
    for (const Event& event : events_of(requests_)) {
      if (event.takes)
        take(event);
      else
        give(event);
    }
    pickle_.end().end().value("segments").begin_list();
    put_segments();
    pickle_.end().value("allocator_settings");
    put_settings();
    pickle_.end();
    result_.requests = requests_.size();
    result_.pickle = pickle_.take();
    return std::move(result_);
  }

 private:
  std::uint64_t bytes_of(std::size_t request) const {
    return static_cast<std::uint64_t>(std::max(1.0, std::round(requests_[request].bytes)));
  }
  const MemoryChange& change_of(std::size_t request) const {
    return memory_.timeline[requests_[request].taken];
  }
  std::size_t stream_of_request(std::size_t request) const {
    return stream_of(memory_.streams, change_of(request).tensor_class);
  }

  void take(const Event& event) {
    std::vector<MemoryPlacement::Change> changes;
    const std::uint64_t bytes = bytes_of(event.request);
    addresses_[event.request] =
        placement_.take(bytes, stream_of_request(event.request), event.request, changes);
    for (const MemoryPlacement::Change& change : changes) {
      const bool out = change.what == MemoryPlacement::Change::What::out_of_memory;
      put_entry(event, to_text(change.what), change.stream);
      pickle_.member(out ? "device_free" : "addr", change.address).member("size", change.bytes);
      pickle_.end();
    }
    put_request(event, "alloc");
    now_ += static_cast<double>(bytes);
    result_.peak = std::max(result_.peak, now_);
    result_.reserved = std::max(result_.reserved, static_cast<double>(placement_.reserved()));
  }
  void give(const Event& event) {
    put_request(event, "free_requested");
    put_request(event, "free_completed");
    placement_.give(addresses_[event.request]);
    now_ -= static_cast<double>(bytes_of(event.request));
  }

  void put_request(const Event& event, std::string_view action) {
    put_entry(event, action, stream_of_request(event.request));
    pickle_.member("addr", addresses_[event.request]).member("size", bytes_of(event.request));
    pickle_.end();
  }
  void put_entry(const Event& event, std::string_view action, std::size_t stream) {
    pickle_.begin_dict().member("action", action).member("stream", stream);
    pickle_.member("time_us", std::llround(memory_.timeline[event.change].time * 1e6));
    pickle_.value("frames");
    put_frames(event.request);
  }

  // Puts the frames innermost first: the class, the operation, the phase.
  void put_frames(std::size_t request) {
    const MemoryChange& change = change_of(request);
    const bool of_step = change.op != no_operation;
    const Op op = of_step ? graph_[change.op] : Op{};
    const std::string file(of_step ? to_text(op.cause) : "set_up");
    std::vector<std::string> names{std::string(change.tensor_class)};
    if (of_step)
      names.push_back(op.layer < 0 ? std::string(change.at)
                                   : fmt::format("{} of layer {}", change.at, op.layer));
    names.push_back(of_step && op.micro_batch >= 0
                        ? fmt::format("{} of micro-batch {}", change.moment, op.micro_batch)
                        : std::string(change.moment));
    std::string all = file;
    for (const std::string& name : names) (all += '\n') += name;
    if (const auto known = frames_.find(all); known != frames_.end()) {
      pickle_.again(known->second);
      return;
    }
    pickle_.begin_list();
    for (const std::string& name : names)
      pickle_.begin_dict().member("name", name).member("filename", file).member("line", 0).end();
    pickle_.end();
    frames_.emplace(std::move(all), pickle_.keep());
  }

  // Puts what lies together in one segment, piece by piece.
  void put_segments() {
    const auto& blocks = placement_.blocks();
    for (auto first = blocks.begin(); first != blocks.end();) {
      auto end = first;
      MemoryPlacement::Address address = first->first;
      for (; end != blocks.end() && end->second.segment == first->second.segment &&
             end->first == address;
           ++end)
        address += end->second.bytes;
      put_segment(first, end);
      first = end;
    }
  }
  using Place = std::map<MemoryPlacement::Address, MemoryPlacement::Block>::const_iterator;
  void put_segment(Place first, Place end) {
    std::uint64_t total = 0, used = 0, requested = 0;
    for (auto each = first; each != end; ++each) {
      total += each->second.bytes;
      used += each->second.requested > 0 ? each->second.bytes : 0;
      requested += each->second.requested;
    }
    const MemoryPlacement::Segment& segment = placement_.segments()[first->second.segment];
    pickle_.begin_dict().member("device", 0).member("address", first->first);
    pickle_.member("total_size", total).member("allocated_size", used);
    pickle_.member("active_size", used).member("requested_size", requested);
    pickle_.member("stream", segment.stream);
    pickle_.member("segment_type", segment.small ? "small" : "large");
    pickle_.value("segment_pool_id").begin_tuple().value(0).value(0).end();
    pickle_.member("is_expandable", placement_.expandable()).value("frames");
    put_frames(segment.owner);
    pickle_.value("blocks").begin_list();
    for (auto each = first; each != end; ++each) put_block(each->first, each->second);
    pickle_.end().end();
  }
  void put_block(MemoryPlacement::Address address, const MemoryPlacement::Block& block) {
    const bool used = block.requested > 0;
    pickle_.begin_dict().member("address", address).member("size", block.bytes);
    pickle_.member("requested_size", block.requested);
    pickle_.member("state", used ? "active_allocated" : "inactive").value("frames");
    if (used)
      put_frames(block.owner);
    else
      pickle_.begin_list().end();
    pickle_.end();
  }

  void put_settings() {
    const bool expandable = placement_.expandable();
    pickle_.begin_dict();
    pickle_.member("PYTORCH_CUDA_ALLOC_CONF", expandable ? "expandable_segments:True" : "");
    pickle_.member("max_split_size", -1).member("garbage_collection_threshold", 0.0);
    pickle_.member("expandable_segments", expandable);
    pickle_.end();
  }

  const RankMemory& memory_;
  const OpGraph& graph_;
  std::vector<Request> requests_;
  std::vector<MemoryPlacement::Address> addresses_;
  MemoryPlacement placement_;
  PickleWriter pickle_;
  std::map<std::string, std::uint32_t> frames_;  // where they stand already
  MemoryViz result_;
  double now_ = 0;
};

}  // namespace

MemoryViz memory_viz(const RankMemory& memory, const OpGraph& graph) {
  return SnapshotWriter(memory, graph).write();
}

}  // namespace stepsim
