#include "analysis/report/paje.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/report/link_use.hpp"
#include "analysis/report/page.hpp"

namespace stepsim {
namespace {

constexpr std::size_t most_points = 4000;  // of one variable, as of a counter in trace_events.cpp

// These events of the format are used, by their numbers in the file, which paje_events.txt begins
// with: it names their fields as PajeNG's PajeDefinitions.cc knows them, and others as a user's
// own.
enum class PajeEvent : std::uint8_t {
  define_container,
  define_state,
  define_variable,
  define_link,
  define_value,
  create,
  destroy,
  set_variable,
  push_state,
  pop_state,
  start_link,
  end_link,
};
// The format knows no escapes: a text ends at the next quotation mark, and a line at its end.
std::string quoted(std::string_view text) {
  std::string all = "\"";
  for (const char c : text)
    all += c == '"' ? '\'' : static_cast<unsigned char>(c) < ' ' || c == '\x7f' ? ' ' : c;
  return all + '"';
}

std::string date(std::int64_t nanoseconds) {
  constexpr std::int64_t second = 1'000'000'000;
  return fmt::format("{}.{:09}", nanoseconds / second, nanoseconds % second);
}

std::int64_t moment(double seconds) {
  return static_cast<std::int64_t>(nanoseconds(seconds));
}

// Readers want events in the order of time. At one moment what ends comes first, so that no stream
// ever has two states, and an arrow begins before it ends.
class Lines {
 public:
  template <class... Field>
  void add(std::int64_t time, PajeEvent event, const Field&... fields) {
    lines_.push_back({time, event, line(event, date(time), fields...)});
  }
  template <class... Field>
  static std::string line(PajeEvent event, const Field&... fields) {
    std::string text = fmt::format("{}", static_cast<int>(event));
    ((text += ' ', fmt::format_to(std::back_inserter(text), "{}", fields)), ...);
    return text + '\n';
  }
  std::string take() {
    std::ranges::stable_sort(lines_, {}, [](const Line& line) {
      return std::pair(line.time, line.event != PajeEvent::pop_state);
    });
    std::string text;
    for (const Line& line : lines_) text += line.text;
    return text;
  }

 private:
  struct Line {
    std::int64_t time;
    PajeEvent event;
    std::string text;
  };
  std::vector<Line> lines_;
};

// The types of containers have these aliases.
constexpr std::string_view platform_type = "P", node_type = "N", gpu_type = "G", host_type = "H",
                           link_type = "L", cable_type = "C";

// Names of parts of one node begin with it where there are several.
std::string_view node_in(std::string_view name) {
  const std::size_t dot = name.find('.');
  return name.starts_with("node") && dot != std::string_view::npos ? name.substr(0, dot)
                                                                   : std::string_view{};
}

// Tells what a node's host does; all else is a GPU's.
bool on_host(const Op& op) {
  return op.kind == OpKind::cpu || op.stream == Stream::host || op.stream == Stream::drive_in ||
         op.stream == Stream::drive_out;
}

// Work of a host's cores stands on the stream of the GPU that waits for it, among copies: it is
// told apart.
std::string_view row_of(const Op& op) {
  return op.kind == OpKind::cpu ? to_text(op.kind) : to_text(op.stream);
}

struct State {
  Rank rank = 0;
  bool of_host = false;
  std::string row{};  // the type of the state
  std::int64_t start = 0, finish = 0;
  const Span* span = nullptr;
};

// A container has one state of a type at a time. What runs beside others on its stream, as sends
// between stages do, has a type with a number.
class States {
 public:
  std::vector<State> of(const Run& run, const Tracks& tracks) {
    std::vector<State> states;
    for (const Track& track : tracks.list)
      for (const Span& span : track.spans) {
        const Op& op = run.graph[span.longest];
        const std::int64_t start = moment(span.start), finish = moment(span.finish);
        if (finish <= start) continue;
        states.push_back(
            {track.rank, on_host(op), place(track.rank, op, start, finish), start, finish, &span});
      }
    return states;
  }

 private:
  std::string place(Rank rank, const Op& op, std::int64_t start, std::int64_t finish) {
    std::vector<std::int64_t>& ends = ends_[{rank, row_of(op)}];
    const auto free = std::ranges::find_if(ends, [&](std::int64_t end) { return end <= start; });
    const auto number = free - ends.begin() + 1;
    if (free == ends.end())
      ends.push_back(finish);
    else
      *free = finish;
    return number == 1 ? std::string(row_of(op)) : fmt::format("{}_{}", row_of(op), number);
  }

  std::map<std::pair<Rank, std::string_view>, std::vector<std::int64_t>> ends_;
};

class PajeWriter {
 public:
  explicit PajeWriter(const Run& run) : run_(run), end_(moment(run.trace.makespan.value)) {
    for (const Device& device : run.platform.devices) nodes_.emplace(node_in(device.name));
    for (const LinkCurve& curve : link_use(run, run.platform.links.size())) links_.push_back(curve);
    std::ranges::sort(links_, {}, &LinkCurve::link);
    for (const LinkCurve& curve : links_)
      if (const std::string_view node = node_in(name_of(curve)); !node.empty())
        nodes_.emplace(node);
  }

  std::string write(const TracksAndArrows& shown) {
    const std::vector<State> states = States().of(run_, shown.tracks);
    define_types();
    define_states(states);
    define_arrows(shown.arrows);
    create_containers();
    for (const State& state : states) write_state(state);
    for (std::size_t i = 0; i < shown.arrows.size(); ++i) write_arrow(shown.arrows[i], i);
    for (Rank rank = 0; rank < run_.platform.devices.size(); ++rank) write_memory(rank);
    for (const LinkCurve& curve : links_) write_link(curve);
    destroy_containers();
    return std::string(page_asset("paje_events.txt")) + head_ + lines_.take();
  }

 private:
  const std::string& name_of(const LinkCurve& curve) const {
    return run_.platform.links[index(curve.link)].name;
  }
  static std::string gpu(Rank rank) { return fmt::format("g{}", rank); }
  static std::string host(Rank rank) { return fmt::format("h{}", rank); }
  static std::string place(Rank rank, bool of_host) { return of_host ? host(rank) : gpu(rank); }
  static std::string_view place_type(bool of_host) { return of_host ? host_type : gpu_type; }
  static std::string value(NameId name) { return fmt::format("v{}", index(name)); }

  static std::string node(std::string_view name) { return name.empty() ? "n" : std::string(name); }
  // A run on one node names no node; the learners and engines of a GRPO job are on many.
  std::string_view title(std::string_view name) const {
    if (!name.empty()) return name;
    return run_.platform.devices.front().name.starts_with("gpu") ? "node0" : "all nodes";
  }
  // Where there are several nodes, a link that is in none of them is a cable between them.
  bool between_nodes(const LinkCurve& curve) const {
    return node_in(name_of(curve)).empty() && !nodes_.contains("");
  }
  std::string_view type_of(const LinkCurve& curve) const {
    return between_nodes(curve) ? cable_type : link_type;
  }
  static std::string link(const LinkCurve& curve) { return fmt::format("l{}", index(curve.link)); }

  template <class... Field>
  void define(PajeEvent event, const Field&... fields) {
    head_ += Lines::line(event, fields...);
  }

  void define_types() {
    for (const auto& [alias, in, name] :
         {std::array<std::string_view, 3>{platform_type, "0", "PLATFORM"},
          {node_type, platform_type, "NODE"},
          {gpu_type, node_type, "GPU"},
          {host_type, node_type, "HOST"},
          {link_type, node_type, "LINK"},
          {cable_type, platform_type, "LINK_BETWEEN_NODES"}})
      define(PajeEvent::define_container, alias, in, quoted(name));
    define(PajeEvent::define_variable, "memory", gpu_type, quoted("memory_that_comes_and_goes"));
    for (const std::string_view type : {link_type, cable_type}) {
      define(PajeEvent::define_variable, fmt::format("{}bandwidth", type), type,
             quoted("bandwidth"));
      define(PajeEvent::define_variable, fmt::format("{}used", type), type,
             quoted("bandwidth_used"));
    }
  }

  void define_states(const std::vector<State>& states) {
    std::map<std::string_view, std::pair<bool, std::set<NameId>>> types;
    for (const State& state : states) {
      auto& [of_host, values] = types[state.row];
      of_host = state.of_host;
      values.insert(run_.graph[state.span->longest].name);
    }
    for (const auto& [row, type] : types) {
      define(PajeEvent::define_state, row, place_type(type.first), quoted(row));
      for (const NameId name : type.second)
        define(PajeEvent::define_value, value(name), row, quoted(run_.graph.names()[index(name)]));
    }
  }

  // A type of links joins two types of containers.
  std::string arrow_type(const Arrow& arrow) const {
    return fmt::format("{}{}", place_type(on_host(run_.graph[arrow.from])),
                       place_type(on_host(run_.graph[arrow.to])));
  }
  void define_arrows(const std::vector<Arrow>& arrows) {
    std::set<std::string> types;
    for (const Arrow& arrow : arrows) types.insert(arrow_type(arrow));
    for (const std::string& type : types) {
      const auto name = [](char end) { return end == host_type[0] ? "host" : "GPU"; };
      define(PajeEvent::define_link, type, platform_type, type[0], type[1],
             quoted(fmt::format("{} to {}", name(type[0]), name(type[1]))));
      define(PajeEvent::define_value, "launch", type, quoted("launch"));
      define(PajeEvent::define_value, "wait", type, quoted("into collective"));
    }
  }

  template <class... Field>
  void create(const Field&... fields) {
    head_ += Lines::line(PajeEvent::create, date(0), fields...);
  }
  void create_containers() {
    create("p", platform_type, "0", quoted("platform"));
    for (const std::string& name : nodes_) create(node(name), node_type, "p", quoted(title(name)));
    for (Rank rank = 0; rank < run_.platform.devices.size(); ++rank) {
      const std::string& name = run_.platform.devices[rank].name;
      create(gpu(rank), gpu_type, node(node_in(name)), quoted(name));
      create(host(rank), host_type, node(node_in(name)), quoted("host of " + name));
    }
    for (const LinkCurve& curve : links_)
      create(link(curve), type_of(curve),
             between_nodes(curve) ? "p" : node(node_in(name_of(curve))), quoted(name_of(curve)));
  }

  void write_state(const State& state) {
    const std::string container = place(state.rank, state.of_host);
    const Op& op = run_.graph[state.span->longest];
    lines_.add(state.start, PajeEvent::push_state, state.row, container, value(op.name),
               to_text(op.kind), to_text(op.cause), to_text(op.phase), state.span->count, op.layer,
               op.micro_batch, op.bytes.value);
    lines_.add(state.finish, PajeEvent::pop_state, state.row, container);
  }

  void write_arrow(const Arrow& arrow, std::size_t number) {
    const Op& from = run_.graph[arrow.from];
    const Op& to = run_.graph[arrow.to];
    const std::string type = arrow_type(arrow);
    const std::string_view what = from.kind == OpKind::host ? "launch" : "wait";
    lines_.add(moment(run_.trace.finish[index(arrow.from)]), PajeEvent::start_link, type, "p", what,
               place(arrow.from_rank, on_host(from)), number);
    lines_.add(moment(run_.trace.start[index(arrow.to)]), PajeEvent::end_link, type, "p", what,
               place(arrow.to_rank, on_host(to)), number);
  }

  void write_memory(Rank rank) {
    const MemoryCurves curves = memory_curves(run_, rank, Pool::device, most_points);
    for (std::size_t i = 0; i < curves.times.size(); ++i)
      lines_.add(moment(curves.times[i]), PajeEvent::set_variable, "memory", gpu(rank),
                 curves.totals[i]);
  }

  void write_link(const LinkCurve& curve) {
    const double capacity = run_.platform.links[index(curve.link)].capacity.value;
    const std::string_view type = type_of(curve);
    lines_.add(0, PajeEvent::set_variable, fmt::format("{}bandwidth", type), link(curve), capacity);
    const Curve use = averaged(curve.share, run_.trace.makespan.value, most_points);
    for (std::size_t i = 0; i < use.times.size(); ++i) {
      if (i > 0 && use.values[i] == use.values[i - 1]) continue;
      lines_.add(moment(use.times[i]), PajeEvent::set_variable, fmt::format("{}used", type),
                 link(curve), use.values[i] * capacity);
    }
  }

  void destroy_containers() {
    const auto destroy = [&](std::string_view type, const std::string& name) {
      lines_.add(end_, PajeEvent::destroy, type, name);
    };
    for (const LinkCurve& curve : links_) destroy(type_of(curve), link(curve));
    for (Rank rank = 0; rank < run_.platform.devices.size(); ++rank) {
      destroy(gpu_type, gpu(rank));
      destroy(host_type, host(rank));
    }
    for (const std::string& name : nodes_) destroy(node_type, node(name));
    destroy(platform_type, "p");
  }

  const Run& run_;
  const std::int64_t end_;
  std::set<std::string, std::less<>> nodes_;  // the empty name: the only one
  std::vector<LinkCurve> links_;
  std::string head_;
  Lines lines_;
};

}  // namespace

TraceText paje_trace(const Run& run, std::size_t most_events) {
  const TracksAndArrows shown = tracks_and_arrows(run, most_events);
  return {PajeWriter(run).write(shown), shown.tracks.operations, shown.tracks.spans(),
          shown.tracks.resolution};
}

}  // namespace stepsim
