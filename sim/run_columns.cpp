#include "sim/run_columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace stepsim {
namespace {

void require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

// ---- how a value is stored ----

constexpr auto grade_words = [] {
  std::array<std::string_view, grade_names.size()> words;
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = grade_names[i].name;
  return words;
}();

// The members of an enumeration that a reader sees by name; none for numbers and ids.
template <class T>
constexpr std::span<const std::string_view> words_of() {
  if constexpr (std::is_same_v<T, OpKind>) return op_kind_names;
  if constexpr (std::is_same_v<T, Stream>) return stream_names;
  if constexpr (std::is_same_v<T, Phase>) return phase_names;
  if constexpr (std::is_same_v<T, Cause>) return cause_names;
  if constexpr (std::is_same_v<T, Pool>) return pool_names;
  if constexpr (std::is_same_v<T, Grade>) return grade_words;
  return {};
}

Dimension dimension_with(std::string_view unit) {
  for (int i = 0; i <= static_cast<int>(Dimension::ratio); ++i)
    if (si_unit(Dimension{i}) == unit) return Dimension{i};
  throw std::logic_error(fmt::format("there is no unit \"{}\"", unit));
}

template <class T>
auto stored(const T& value) {
  if constexpr (std::is_same_v<T, Dimension>)
    return std::string(si_unit(value));
  else if constexpr (!words_of<T>().empty() || std::is_same_v<T, bool>)
    return static_cast<std::uint8_t>(value);
  else if constexpr (std::is_enum_v<T>)
    return static_cast<std::uint32_t>(value);  // an id
  else if constexpr (requires { value.value; })
    return value.value;
  else
    return value;
}
template <class T>
using StoredAs = decltype(stored(std::declval<const T&>()));

template <class T>
T restored(StoredAs<T> value) {
  if constexpr (std::is_same_v<T, Dimension>) {
    return dimension_with(value);
  } else {
    if constexpr (!words_of<T>().empty())
      require(value < words_of<T>().size(), "a value is no member of its enumeration");
    return T(std::move(value));
  }
}

// ---- tables: rows of C++ values on one side, columns on the other ----

template <class Member>
struct Field {
  const char* name;
  Member member;  // of a row; std::identity when the row is the value
  std::string_view unit;
};
// A quantity knows its unit; a bare double may be given one.
template <class Member>
Field<Member> field(const char* name, Member member = {}, std::string_view unit = {}) {
  return {name, member, unit};
}
Field<std::identity> plain(const char* name, std::string_view unit = {}) {
  return {name, {}, unit};
}

template <class Rows, class Member>
using Cell = std::remove_cvref_t<std::invoke_result_t<Member, typename Rows::value_type&>>;

// The two directions have the same face, so each table below is listed once.
struct Put {
  const ColumnSink& sink;

  template <class Rows, class... Members>
  void table(const std::string& group, const Rows& rows, const Field<Members>&... fields) const {
    (put(group, rows, fields), ...);
  }
  template <class T>
  void value(const std::string& path, ColumnKind place, const T& from,
             std::string_view unit = {}) const {
    sink({path, place, std::vector{stored(from)}, {}, std::string(unit)});
  }

 private:
  template <class Rows, class Member>
  void put(const std::string& group, const Rows& rows, const Field<Member>& field) const {
    using T = Cell<Rows, Member>;
    std::vector<StoredAs<T>> values;
    values.reserve(rows.size());
    for (const auto& row : rows) values.push_back(stored(std::invoke(field.member, row)));
    std::string_view unit = field.unit;
    if constexpr (requires(T quantity) { quantity.value; }) unit = si_unit(dimension_of<T>());
    sink({fmt::format("{}/{}", group, field.name), ColumnKind::column, std::move(values),
          words_of<T>(), std::string(unit)});
  }
};

struct Get {
  const ColumnSource& source;

  template <class Rows, class... Members>
  void table(const std::string& group, Rows& rows, const Field<Members>&... fields) const {
    std::optional<std::size_t> size;  // the first column's; the others must agree
    (get(group, rows, size, fields), ...);
  }
  template <class T>
  std::string value(const std::string& path, ColumnKind place, T& into) const {
    auto [values, unit] = column<T>(path, place);
    require(values.size() == 1, "a single value is none");
    into = restored<T>(values.front());
    return unit;
  }
  template <class T>
  auto column(const std::string& path, ColumnKind place) const {
    Column column{path, place, std::vector<StoredAs<T>>{}, words_of<T>()};
    source.fill(column);
    return std::pair{std::get<std::vector<StoredAs<T>>>(std::move(column.values)), column.unit};
  }

 private:
  template <class Rows, class Member>
  void get(const std::string& group, Rows& rows, std::optional<std::size_t>& size,
           const Field<Member>& field) const {
    using T = Cell<Rows, Member>;
    auto values = column<T>(fmt::format("{}/{}", group, field.name), ColumnKind::column).first;
    if (!size) rows.resize(size.emplace(values.size()));
    require(values.size() == size, "the columns of a table differ in length");
    for (std::size_t i = 0; i < rows.size(); ++i)
      std::invoke(field.member, rows[i]) = restored<T>(std::move(values[i]));
  }
};

// ---- the tables ----

void small_tables(const auto& door, auto& platform, auto& link_uses, auto& constants) {
  door.table("/links", platform.links, field("name", &Link::name),
             field("capacity", &Link::capacity), field("weight", &Link::weight));
  door.table("/links", link_uses, field("bytes", &LinkUse::bytes, "B"),
             field("busy", &LinkUse::busy));
  door.table("/devices", platform.devices, field("name", &Device::name),
             field("speed", &Device::speed), field("compute_share", &Device::compute_share),
             field("collective_share", &Device::collective_share));
  door.table("/constants", constants, field("name", &NamedConstant::name),
             field("value", &NamedConstant::value), field("unit", &NamedConstant::dimension),
             field("low", &NamedConstant::low), field("high", &NamedConstant::high),
             field("source", &NamedConstant::source), field("grade", &NamedConstant::grade));
}

void op_tables(const auto& door, auto&& ops, auto& trace) {
  door.table("/ops", ops, field("rank", &Op::rank), field("stream", &Op::stream),
             field("kind", &Op::kind), field("cause", &Op::cause), field("phase", &Op::phase),
             field("layer", &Op::layer), field("micro_batch", &Op::micro_batch),
             field("name", &Op::name), field("pattern", &Op::pattern),
             field("seconds", &Op::seconds), field("bytes", &Op::bytes),
             field("flops", &Op::flops));
  door.table("/ops", trace.ready, plain("ready", "s"));
  door.table("/ops", trace.start, plain("start", "s"));
  door.table("/ops", trace.finish, plain("finish", "s"));
}

void pattern_tables(const auto& door, auto&& patterns, auto& rounds, auto& flows) {
  door.table("/patterns", patterns, field("name", &Pattern::name),
             field("occupancy", &Pattern::occupancy));
  door.table("/patterns", rounds, field("round_latency", &Round::latency));
  door.table("/patterns", flows, field("flow_source", &Flow::source),
             field("flow_target", &Flow::target), field("flow_share", &Flow::share),
             field("flow_wire", &Flow::wire), field("flow_rate_cap", &Flow::rate_cap, "B/s"));
}

void memory_table(const auto& door, auto& effects) {
  door.table("/memory", effects, field("op", &MemoryEffect::op),
             field("at_start", &MemoryEffect::at_start), field("rank", &MemoryEffect::rank),
             field("pool", &MemoryEffect::pool), field("class", &MemoryEffect::tensor_class),
             field("delta", &MemoryEffect::bytes, "B"));
}

// ---- lists within rows: the items of row i are items[offsets[i] .. offsets[i + 1]) ----

template <class Row, class List>
std::vector<typename List::value_type> put_list(const Put& put, const std::string& group,
                                                const char* offsets_name, std::span<const Row> rows,
                                                List Row::*list) {
  std::vector<std::uint64_t> offsets{0};
  std::vector<typename List::value_type> items;
  for (const Row& row : rows) {
    items.insert(items.end(), (row.*list).begin(), (row.*list).end());
    offsets.push_back(items.size());
  }
  put.table(group, offsets, plain(offsets_name));
  return items;
}

void check_offsets(std::span<const std::uint64_t> offsets, std::size_t rows, std::size_t items) {
  require(offsets.size() == rows + 1 && offsets.front() == 0 && offsets.back() == items &&
              std::ranges::is_sorted(offsets),
          "offsets do not divide their items");
}

template <class Row, class List>
void get_list(const Get& get, const std::string& group, const char* offsets_name,
              std::vector<Row>& rows, List Row::*list,
              std::vector<typename List::value_type>& items) {
  std::vector<std::uint64_t> offsets;
  get.table(group, offsets, plain(offsets_name));
  check_offsets(offsets, rows.size(), items.size());
  const auto item = [&](std::uint64_t at) {
    return std::make_move_iterator(items.begin() + static_cast<std::ptrdiff_t>(at));
  };
  for (std::size_t i = 0; i < rows.size(); ++i)
    (rows[i].*list).assign(item(offsets[i]), item(offsets[i + 1]));
}

void put_patterns(const Put& put, std::span<const Pattern> patterns) {
  const auto rounds = put_list(put, "/patterns", "round_offsets", patterns, &Pattern::rounds);
  const auto flows = put_list(put, "/patterns", "flow_offsets", std::span(rounds), &Round::flows);
  pattern_tables(put, patterns, rounds, flows);
  put.table("/patterns", put_list(put, "/patterns", "path_offsets", std::span(flows), &Flow::path),
            plain("path_links"));
  put.table("/patterns", put_list(put, "/patterns", "members_offsets", patterns, &Pattern::members),
            plain("members"));
}

std::vector<Pattern> get_patterns(const Get& get) {
  std::vector<Pattern> patterns;
  std::vector<Round> rounds;
  std::vector<Flow> flows;
  std::vector<LinkId> links;
  std::vector<Rank> members;
  pattern_tables(get, patterns, rounds, flows);
  get.table("/patterns", links, plain("path_links"));
  get.table("/patterns", members, plain("members"));
  get_list(get, "/patterns", "path_offsets", flows, &Flow::path, links);
  get_list(get, "/patterns", "flow_offsets", rounds, &Round::flows, flows);
  get_list(get, "/patterns", "round_offsets", patterns, &Pattern::rounds, rounds);
  get_list(get, "/patterns", "members_offsets", patterns, &Pattern::members, members);
  return patterns;
}

// ---- the graph ----

void put_memory(const Put& put, const OpGraph& graph, const Trace& trace) {
  const auto time_of = [&](const MemoryEffect& effect) {
    return (effect.at_start ? trace.start : trace.finish)[index(effect.op)];
  };
  std::vector<MemoryEffect> effects(graph.memory().begin(), graph.memory().end());
  std::ranges::stable_sort(effects, {}, time_of);
  std::vector<double> times(effects.size());
  std::ranges::transform(effects, times.begin(), time_of);
  put.table("/memory", times, plain("time", "s"));
  memory_table(put, effects);
}

OpGraph get_graph(const Get& get, Trace& trace) {
  OpGraph graph;
  std::vector<std::string> names;
  get.table("", names, plain("names"));
  for (std::size_t i = 0; i < names.size(); ++i)
    require(index(graph.name(names[i])) == i, "a name stands twice");
  for (Pattern& pattern : get_patterns(get)) graph.pattern(std::move(pattern));

  std::vector<Op> ops;
  std::vector<std::uint64_t> offsets;
  std::vector<OpId> edges;
  op_tables(get, ops, trace);
  get.table("/edges", offsets, plain("offsets"));
  get.table("/edges", edges, plain("targets"));
  check_offsets(offsets, ops.size(), edges.size());
  for (std::size_t i = 0; i < ops.size(); ++i)
    graph.add(ops[i], std::span(edges).subspan(offsets[i], offsets[i + 1] - offsets[i]));

  std::vector<MemoryEffect> effects;
  memory_table(get, effects);
  for (const MemoryEffect& effect : effects) graph.allocate(effect);
  return graph;
}

// ---- the whole ----

bool is_name(std::string_view name) {
  return !name.empty() &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string_view::npos;
}

constexpr double most_of_a_request = 1e18;  // bytes; also no number is not below it

// Validates platform and program, and then what their own checks leave open.
void validate(const Run& run) {
  validate(run.platform);
  validate(run.graph, run.platform);
  const std::size_t ranks = run.platform.devices.size();
  const std::size_t names = run.graph.names().size();
  for (const auto* times : {&run.trace.ready, &run.trace.start, &run.trace.finish})
    require(times->size() == run.graph.size(), "an operation has no time");
  require(times_make_sense(run.trace), "an operation's times are out of order, or of the run");
  require(run.trace.links.size() == run.platform.links.size(), "a link has no account of its use");
  require((run.lane_sizes.empty() || run.lane_sizes.size() == ranks) &&
              std::ranges::count(run.lane_sizes, 0u) == 0,
          "a rank has no lane size");
  for (const Op& op : run.graph.ops())
    require(index(op.name) < names &&
                (op.pattern == no_pattern || index(op.pattern) < run.graph.patterns().size()),
            "an operation has no name, or an unknown pattern");
  for (const Pattern& pattern : run.graph.patterns())
    for (const Round& round : pattern.rounds)
      for (const Flow& flow : round.flows)
        require(flow.source < ranks && flow.target < ranks, "a flow has no such end");
  for (const MemoryEffect& effect : run.graph.memory())
    require(index(effect.op) < run.graph.size() && effect.rank < ranks &&
                index(effect.tensor_class) < names,
            "a memory effect is of no known operation, rank or class");
  for (const MemoryEffect& effect : run.graph.memory())
    require(std::abs(effect.bytes) <= most_of_a_request,
            "a memory effect is larger than any machine");
  for (const Scalar& scalar : run.summary)
    require(is_name(scalar.name), "a summary's name has other characters than a-z, 0-9 and _");
}

// Returns 64-bit FNV-1a.
std::string digest(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return fmt::format("{:016x}", hash);
}

}  // namespace

void write_columns(const Run& run, const ColumnSink& sink) {
  validate(run);
  const Put put{sink};
  const auto ranks = static_cast<std::uint32_t>(run.platform.devices.size());
  put.value("scenario_digest", ColumnKind::attribute, digest(run.scenario));
  put.value("ranks", ColumnKind::attribute, ranks);
  put.value("makespan", ColumnKind::attribute, run.trace.makespan);
  put.value("activities", ColumnKind::attribute, run.trace.activities);
  put.value("engine", ColumnKind::attribute, name_of(run.trace.by));
  sink({"lane_sizes", ColumnKind::list_attribute,
        run.lane_sizes.empty() ? std::vector<std::uint32_t>(ranks, 1) : run.lane_sizes});
  put.value("/scenario", ColumnKind::single_value, run.scenario);
  small_tables(put, run.platform, run.trace.links, run.constants);
  put.table("/devices",
            put_list(put, "/devices", "engines_offsets", std::span(run.platform.devices),
                     &Device::engines),
            plain("engines"));
  put.table("", run.graph.names(), plain("names"));
  put_patterns(put, run.graph.patterns());
  op_tables(put, run.graph.ops(), run.trace);
  put.table("/edges", run.graph.offsets(), plain("offsets"));
  put.table("/edges", run.graph.edges(), plain("targets"));
  put_memory(put, run.graph, run.trace);
  for (const Scalar& scalar : run.summary)
    put.value("/summary/" + scalar.name, ColumnKind::single_value, scalar.value,
              si_unit(scalar.dimension));
}

Run read_columns(const ColumnSource& source) {
  const Get get{source};
  Run run;
  std::string hash;
  get.value("scenario_digest", ColumnKind::attribute, hash);
  get.value("makespan", ColumnKind::attribute, run.trace.makespan);
  get.value("activities", ColumnKind::attribute, run.trace.activities);
  std::string engine;
  get.value("engine", ColumnKind::attribute, engine);
  run.trace.by = played_by(engine);
  get.value("/scenario", ColumnKind::single_value, run.scenario);
  require(hash == digest(run.scenario), "the scenario does not match its digest");
  small_tables(get, run.platform, run.trace.links, run.constants);
  std::vector<LinkId> engines;
  get.table("/devices", engines, plain("engines"));
  get_list(get, "/devices", "engines_offsets", run.platform.devices, &Device::engines, engines);
  run.graph = get_graph(get, run.trace);
  run.lane_sizes = get.column<std::uint32_t>("lane_sizes", ColumnKind::list_attribute).first;
  require(run.lane_sizes.size() == run.platform.devices.size(), "a rank has no lane size");
  if (std::ranges::all_of(run.lane_sizes, [](auto n) { return n == 1; })) run.lane_sizes.clear();
  for (const std::string& name : source.list("/summary")) {
    Scalar scalar{.name = name};
    scalar.dimension =
        dimension_with(get.value("/summary/" + name, ColumnKind::single_value, scalar.value));
    run.summary.push_back(std::move(scalar));
  }
  validate(run);
  return run;
}

}  // namespace stepsim
