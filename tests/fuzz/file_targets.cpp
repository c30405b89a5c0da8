#include <algorithm>
#include <array>
#include <stdexcept>

#include "analysis/report/page.hpp"
#include "analysis/report/trace_events.hpp"
#include "analysis/studies/sweep/sweep_report.hpp"
#include "analysis/studies/sweep/sweep_table.hpp"
#include "scenarios/foreign/text/relaxed_json.hpp"
#include "sim/base/config.hpp"
#include "sim/base/csv.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/pickle.hpp"
#include "sim/base/units.hpp"
#include "sim/base/xml_elements.hpp"
#include "sim/run_columns.hpp"
#include "sim/run_file.hpp"
#include "tests/fuzz/targets.hpp"
#include "tests/support/tiny_run.hpp"

namespace stepsim::fuzz {
namespace {

void require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

void read_units(const std::string& bytes) {
  const auto quantity = parse_quantity(bytes);
  if (!quantity) return;
  to_text(quantity->value, quantity->dimension);
  size_text(quantity->value);
}

// What is written is read as what was meant.
void read_yaml(const std::string& bytes) {
  Document document = parse_document(bytes, "file.yaml");
  const std::string written = document.canonical();
  require(parse_document(written, "again.yaml").canonical() == written,
          "YAML is written otherwise than it is read");
  document.set("a.b", bytes);
  document.finish();
}

void read_setting(const std::string& bytes) {
  Document document = parse_document("{a: {b: [1, 2], c: x}, d: 3}", "file.yaml");
  const std::size_t sign = std::min(bytes.find('='), bytes.size());
  document.set(bytes.substr(0, sign), bytes.substr(std::min(sign + 1, bytes.size())));
  const std::string written = document.canonical();
  require(parse_document(written, "again.yaml").canonical() == written,
          "a setting is written otherwise than it is read");
}

void read_xml(const std::string& bytes) {
  xml_elements(bytes, "file.xml");
}

void read_toml(const std::string& bytes) {
  const Document document = parse_toml_document(bytes, "file.toml");
  parse_document(document.canonical(), "again.yaml");
}

void read_json(const std::string& bytes) {
  parse_document(without_comments(bytes, "file.json"), "file.json");
}

void read_table(const std::string& bytes) {
  CsvTable table = parse_csv(bytes, "file.csv");
  std::vector<std::vector<std::string>> cells;
  for (const CsvTable::Row& row : table.rows) cells.push_back(mapped(row.cells, printable));
  table.columns = mapped(table.columns, printable);
  const CsvTable again = parse_csv(csv_text(table.columns, cells), "again.csv");
  require(again.columns == table.columns && again.rows.size() == table.rows.size(),
          "CSV is written otherwise than it is read");
}

void follow(const Pickle& pickle, Pickle::Id id, std::size_t& left) {
  if (left == 0) return;
  --left;
  switch (pickle.kind(id)) {
    case Pickle::Kind::text:
      pickle.text(id);
      break;
    case Pickle::Kind::dict:
      pickle.find(id, "segments");
      [[fallthrough]];
    case Pickle::Kind::list:
    case Pickle::Kind::tuple:
      for (const Pickle::Id each : pickle.items(id)) follow(pickle, each, left);
      break;
    default:
      break;
  }
}

void follow_pickle(const std::string& bytes) {
  const Pickle pickle = read_pickle(bytes, "file.pickle");
  std::size_t left = 4 * pickle.size();  // a value may stand in several places
  follow(pickle, pickle.root(), left);
}

// All that is made of a run.
void use(const Run& run) {
  constexpr std::size_t most_events = 2000;
  trace_events(run, most_events);
  page_html({.title = "run", .steps = {{"run", &run}}, .gap = {}, .claims = {}, .sweep = {}});
}

const std::vector<Column>& sound_columns() {
  static const std::vector<Column> columns = [] {
    std::vector<Column> all;
    write_columns(tiny_run(), [&](const Column& column) { all.push_back(column); });
    return all;
  }();
  return columns;
}

// Without a file around them, which takes most of the time. What a file's reader refuses throws
// std::runtime_error.
void read_run_columns(const std::string& bytes) {
  const std::vector<Column> columns = mutated(sound_columns(), bytes);
  const auto fill = [&](Column& wanted) {
    for (const Column& column : columns)
      if (column.path == wanted.path && column.place == wanted.place &&
          column.values.index() == wanted.values.index()) {
        wanted.values = column.values;
        wanted.unit = column.unit;
        return;
      }
    throw std::runtime_error("no such column");
  };
  const auto list = [&](const std::string& group) {
    std::vector<std::string> names;
    for (const Column& column : columns)
      if (column.path.starts_with(group + "/"))
        names.push_back(column.path.substr(group.size() + 1));
    return names;
  };
  try {
    use(read_columns({fill, list}));
  } catch (const std::logic_error&) {  // no run, it says
  } catch (const std::runtime_error&) {
  }
}

std::string image_of(std::span<const std::string_view> groups, const std::vector<Column>& columns) {
  return image_of_columns(groups, [&](const ColumnSink& sink) {
    for (const Column& column : columns) sink(column);
  });
}

// Wrong columns may make no file at all; then there is nothing to read.
std::string image_or_nothing(std::span<const std::string_view> groups,
                             const std::vector<Column>& columns) {
  try {
    return image_of(groups, columns);
  } catch (const std::exception&) {
    return "";
  }
}

// Those that are not among the sound ones as they are.
std::vector<Column> changed_columns(const std::vector<Column>& sound, std::vector<Column> columns) {
  std::erase_if(columns, [&](const Column& column) {
    return std::ranges::any_of(sound, [&](const Column& each) {
      return each.path == column.path && each.place == column.place && each.unit == column.unit &&
             each.values == column.values;
    });
  });
  return columns;
}

// What cannot be read says so.
void fill(const ColumnReader& reader, Column column) {
  try {
    reader.fill(column);
  } catch (const std::runtime_error&) {
  }
}

// A file of 60 columns takes most of its time for those that are sound: they are left out but for
// one of sixteen inputs, whose file is read as a run.
void read_run_image(const std::string& bytes) {
  static const std::vector<std::string_view> groups{"constants", "ops",   "edges",   "patterns",
                                                    "memory",    "links", "devices", "summary"};
  static const std::vector<Column> sound = [] {
    std::vector<Column> columns = sound_columns();
    columns.push_back(
        {"schema_version", ColumnKind::attribute, std::vector<std::uint32_t>{run_schema_version}});
    return columns;
  }();
  const std::vector<Column> columns = mutated(sound, bytes);
  if (is_turn_of(bytes)) {
    const std::string image = image_or_nothing(groups, columns);
    if (!image.empty()) use(decode_run(image, "file.h5"));
    return;
  }
  const std::vector<Column> changed = changed_columns(sound, columns);
  const std::string image = image_or_nothing(groups, changed);
  if (image.empty()) return;
  const ColumnReader reader(image);
  for (const Column& column : changed) {
    fill(reader, column);
    // And as what it should have been.
    for (const Column& each : sound)
      if (each.path == column.path) fill(reader, each);
  }
  for (const std::string_view group : groups) reader.list(std::string(group));
}

void read_run_bytes(const std::string& bytes) {
  use(decode_run(bytes, "file.h5"));
}

void use(const SweepTable& table) {
  csv_of(table);
  report_of(table);
}

void read_sweep_bytes(const std::string& bytes) {
  const std::string path = as_file("sweep.h5", bytes);
  use(read_sweep(path));
  merge_shards(std::vector{path});
}

void read_sweep_image(const std::string& bytes) {
  using Texts = std::vector<std::string>;
  const auto attribute = [](const char* name, Values values) {
    return Column{name, ColumnKind::attribute, std::move(values)};
  };
  const auto single = [](const char* name, const char* value) {
    return Column{name, ColumnKind::single_value, Texts{value}};
  };
  const auto column = [](const char* name, Values values) {
    return Column{name, ColumnKind::column, std::move(values)};
  };
  const std::vector<Column> sound{
      attribute("schema_version", std::vector<std::uint32_t>{2}),
      attribute("stepsim_version", Texts{"0.1.0"}),
      attribute("digest", Texts{"0123456789abcdef"}),
      attribute("title", Texts{"tiny"}),
      attribute("points", std::vector<std::uint64_t>{3}),
      single("/scenario", "name: tiny\n"),
      single("/source", "tiny.yaml"),
      single("/set", "strategy.zero=3\n"),
      column("/settings/job.micro_batch", Texts{"1", "2", "4"}),
      column("/points/index", std::vector<std::uint64_t>{0, 1, 2}),
      column("/points/feasible", std::vector<std::uint8_t>{1, 1, 0}),
      column("/points/reason", Texts{"", "", "too large"}),
      column("/points/bottleneck", Texts{"compute", "launch", ""}),
      column("/points/step_time", std::vector<double>{1, 2, 3}),
      column("/points/tokens_per_second", std::vector<double>{10, 12, 0})};
  const std::string image = image_or_nothing(std::array<std::string_view, 2>{"settings", "points"},
                                             mutated(sound, bytes));
  if (image.empty()) return;
  const std::string path = as_file("sweep.h5", image);
  use(read_sweep(path));
  if (is_turn_of(bytes)) merge_shards(std::vector{path});
}

constexpr Target targets[]{{"units", read_units},
                           {"yaml", read_yaml},
                           {"setting", read_setting},
                           {"toml", read_toml},
                           {"xml", read_xml},
                           {"json", read_json},
                           {"table", read_table},
                           {"pickle", follow_pickle},
                           {"run-columns", read_run_columns},
                           {"run-image", read_run_image},
                           {"run-bytes", read_run_bytes},
                           {"sweep-image", read_sweep_image},
                           {"sweep-bytes", read_sweep_bytes}};

}  // namespace

std::span<const Target> file_targets() {
  return targets;
}

}  // namespace stepsim::fuzz
