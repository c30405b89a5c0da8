#include "scenarios/rows/measured.hpp"

#include "sim/base/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"
#include "tests/support/temporary_folder.hpp"

using namespace stepsim;
using Catch::Contains;

namespace {

std::vector<MeasuredCollective> rows_of(std::string_view text) {
  return measured_collectives(parse_csv(text, "m.csv"));
}

std::vector<RowNote> notes_of(std::string_view text) {
  const auto rows = rows_of("id,collective,hardware\nfirst,all_reduce,H100\nsecond,h2d,H100\n");
  return row_notes(parse_csv(text, "n.csv"), rows);
}

}  // namespace

TEST_CASE("quoted cells keep commas, line ends and doubled quotes", "[scenarios]") {
  const CsvTable table = parse_csv("a,b\n\"x,1\",\"two\nlines\"\n\"say \"\"no\"\"\",\n", "t.csv");
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[0].cells == std::vector<std::string>{"x,1", "two\nlines"});
  CHECK(table.rows[1].cells == std::vector<std::string>{"say \"no\"", ""});
}

TEST_CASE("rows know their line, also below a cell of two lines", "[scenarios]") {
  const CsvTable table = parse_csv("a,b\n1,\"two\nlines\"\n\n2,3\n", "t.csv");
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[0].line == 2);
  CHECK(table.rows[1].line == 5);
}

TEST_CASE("Windows line ends and a byte order mark change nothing", "[scenarios]") {
  const CsvTable plain = parse_csv("a,b\n1,2\n", "t.csv");
  const CsvTable windows = parse_csv(
      "\xEF\xBB\xBF"
      "a,b\r\n1,2\r\n",
      "t.csv");
  CHECK(windows.columns == plain.columns);
  CHECK(windows.rows.at(0).cells == plain.rows.at(0).cells);
}

TEST_CASE("the last line needs no end", "[scenarios]") {
  CHECK(parse_csv("a,b\n1,2", "t.csv").rows.size() == 1);
  CHECK(parse_csv("", "t.csv").columns.empty());
  CHECK(parse_csv("a,b", "t.csv").rows.empty());
}

TEST_CASE("a row with too few or too many cells is named with its line", "[scenarios]") {
  CHECK_THROWS_WITH(parse_csv("a,b\n1,2\n1\n", "t.csv"), "t.csv:3: expected 2 cells, found 1");
  CHECK_THROWS_WITH(parse_csv("a,b\n1,2,3\n", "t.csv"), "t.csv:2: expected 2 cells, found 3");
}

TEST_CASE("a quote that is never closed is named with the line where its row began",
          "[scenarios]") {
  CHECK_THROWS_WITH(parse_csv("a,b\n1,2\n1,\"2\n3,4\n", "t.csv"),
                    "t.csv:3: a quoted cell is never closed");
}

TEST_CASE("a cell of a column that is not there is empty", "[scenarios]") {
  const CsvTable table = parse_csv("a\n1\n", "t.csv");
  CHECK(table.cell(table.rows.at(0), "a") == "1");
  CHECK(table.cell(table.rows.at(0), "b").empty());
}

TEST_CASE("a table that is missing or is a folder cannot be read", "[scenarios]") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(read_csv(folder.file("none.csv")), Contains("none.csv: cannot be read: "));
  CHECK_THROWS_WITH(read_csv(folder.path()), Contains("it is a folder"));
}

TEST_CASE("all missing columns of a measured table are named at once", "[scenarios]") {
  CHECK_THROWS_WITH(rows_of("id,colective\n1,2\n"),
                    "m.csv:1: collective: the column is missing (did you mean \"colective\"?)\n"
                    "m.csv:1: hardware: the column is missing");
}

TEST_CASE("every cell that is no number is named with line and column", "[scenarios]") {
  CHECK_THROWS_WITH(rows_of("collective,hardware,size_bytes,time_us\n"
                            "all_reduce,H100,1e3,5\n"
                            "all_reduce,H100,1 KiB,fast\n"
                            "all_reduce,H100,-1,5\n"),
                    "m.csv:3: size_bytes: expected a number, found \"1 KiB\"\n"
                    "m.csv:3: time_us: expected a number, found \"fast\"\n"
                    "m.csv:4: size_bytes: expected a number, found \"-1\"");
}

TEST_CASE("ranks and nodes are whole and not absurd", "[scenarios]") {
  CHECK_THROWS_WITH(rows_of("collective,hardware,nodes,gpus\nall_reduce,H100,1.5,1e12\n"),
                    "m.csv:2: nodes: expected a whole number, found \"1.5\"\n"
                    "m.csv:2: gpus: expected a whole number, found \"1e12\"");
}

TEST_CASE("units of a measured table become SI and empty cells their defaults", "[scenarios]") {
  const auto rows = rows_of(
      "id,source,collective,hardware,nodes,gpus,size_bytes,time_us,busbw_GBps\n"
      ",org/repo some/file.md,all_reduce,8x H100,2,16,1048576,25,\n"
      "x,,h2d_memcpy,H100,,,,,51\n");
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].id == "line 2");
  CHECK(rows[0].source == "org/repo");
  CHECK(rows[0].nodes == 2);
  CHECK(rows[0].gpus == 16);
  CHECK(rows[0].bytes == 1048576);
  CHECK(rows[0].time == 25 * 1e-6);
  CHECK(rows[1].id == "x");
  CHECK(rows[1].nodes == 1);
  CHECK(rows[1].gpus == 1);
  CHECK(rows[1].rate == 51e9);
}

TEST_CASE("a row is of the machine that it names, else of its card's usual node", "[scenarios]") {
  const Catalogue& data = source_data();
  MeasuredCollective row;
  for (const auto& [hardware, node] :
       {std::pair{"NVIDIA H100 80GB HBM3", "h100-8"}, std::pair{"H100-80GB PCIe", "h100-pcie-2"},
        std::pair{"MI300X-192GB", "mi300x-8"}, std::pair{"A100-SXM4-40GB", "a100-8-40"},
        std::pair{"H100 (Hopper)", "h100-8"}}) {
    row.hardware = hardware;
    const auto machine = machine_of(data, row);
    REQUIRE(machine.has_value());
    CHECK(machine->name == node);
  }
  row.nodes = 2;
  CHECK(machine_of(data, row)->network.empty());
  row.interconnect = "gVNIC";  // described, and no network of the catalogue is named
  CHECK_FALSE(machine_of(data, row).has_value());
  row.network = "efa-v2";
  CHECK(machine_of(data, row)->network == "efa-v2");
  row.nodes = 1;
  for (const char* unknown : {"A100-64GB", "XH100X", "TPU v5p", ""}) {
    row.hardware = unknown;
    CHECK_FALSE(machine_of(data, row).has_value());
  }
  row.machine = "gh200-4";
  CHECK(machine_of(data, row)->name == "gh200-4");
}

TEST_CASE("notes say which rows are left out and why", "[scenarios]") {
  const auto notes = notes_of("id,left_out,note\nsecond,yes,\"another operation, really\"\n");
  REQUIRE(notes.size() == 1);
  CHECK(notes[0].id == "second");
  CHECK(notes[0].left_out);
  CHECK(notes[0].note == "another operation, really");
}

TEST_CASE("a note needs a row, a yes or no, and a reason, once", "[scenarios]") {
  CHECK_THROWS_WITH(notes_of("id,note\nfirst,why\n"),
                    Contains("n.csv:1: left_out: the column is missing"));
  CHECK_THROWS_WITH(notes_of("id,left_out,note\nfrist,no,why\n"),
                    "n.csv:2: id: no measured row \"frist\" (did you mean \"first\"?)");
  CHECK_THROWS_WITH(notes_of("id,left_out,note\nfirst,,why\n"),
                    "n.csv:2: left_out: expected yes or no, found \"\"");
  CHECK_THROWS_WITH(notes_of("id,left_out,note\nfirst,no,\n"),
                    "n.csv:2: note: is missing: say why");
  CHECK_THROWS_WITH(notes_of("id,left_out,note\nfirst,no,a\nfirst,yes,b\n"),
                    "n.csv:3: id: \"first\" has a note already");
}
