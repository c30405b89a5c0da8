// How far predictions are from published measurements: the promise that docs/collectives.md makes.
#include "analysis/studies/fidelity/comparison.hpp"

#include <cmath>

#include "analysis/studies/predict/bandwidth.hpp"
#include "sim/base/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"
#include "topology/catalog.hpp"

using namespace stepsim;
using Catch::Contains;

namespace {

const Catalogue& data = source_data();
const std::string folder = data.file("scenarios/measured/");
constexpr double gib = 1024.0 * 1024 * 1024;

std::vector<MeasuredCollective> published() {
  return measured_collectives(read_csv(folder + "collectives.csv"));
}

Comparison compare_published() {
  const auto rows = published();
  CompareOptions options;
  options.notes = row_notes(read_csv(folder + "collectives-notes.csv"), rows);
  return compare(data, rows, options);
}

double bus_rate(const std::string& cluster, std::vector<Rank> ranks, double bytes) {
  const BandwidthQuestion question{
      .operation = "all_reduce", .ranks = std::move(ranks), .sizes = {bytes}, .options = {}};
  const BandwidthAnswer answer = measure_bandwidth(
      load_cluster(data, {.name = cluster, .nodes = {}, .network = ""}), question);
  return answer.rows.at(0).bus_bandwidth.value;
}

MeasuredCollective row_of(std::string hardware, std::string collective, std::uint32_t gpus,
                          double bytes, double time) {
  MeasuredCollective row;
  row.id = collective;
  row.hardware = std::move(hardware);
  row.collective = std::move(collective);
  row.gpus = gpus;
  row.bytes = bytes;
  row.time = time;
  return row;
}

}  // namespace

TEST_CASE("published collectives are met within 10 percent when large and 25 when small",
          "[analysis]") {
  const Comparison comparison = compare_published();
  CHECK(comparison.all.large.rows > 70);
  CHECK(comparison.all.large.median <= 0.10);
  CHECK(comparison.all.small.rows > 100);
  CHECK(comparison.all.small.median <= 0.25);
}

TEST_CASE("no published row is off by more than a factor of two without a written reason",
          "[analysis]") {
  for (const ComparedRow& row : compare_published().rows) {
    CAPTURE(row.measured.id, row.time, row.predicted, row.error);
    CHECK((!row.far_off() || !row.note.empty()));
  }
}

TEST_CASE("rows that are left out are not compared and say why", "[analysis]") {
  std::size_t left_out = 0;
  for (const ComparedRow& row : compare_published().rows) {
    if (row.compared()) continue;
    ++left_out;
    CAPTURE(row.measured.id);
    CHECK(!row.note.empty());
    CHECK(row.predicted == 0);
  }
  CHECK(left_out > 0);
}

TEST_CASE("two MI300X reach the rate of the one link between them", "[analysis]") {
  const double rate = bus_rate("mi300x-8", {0, 1}, 4 * gib);
  CHECK(rate >= 45e9);
  CHECK(rate <= 50e9);
}

TEST_CASE("eight MI300X reach the rate of their seven links", "[analysis]") {
  const double rate = bus_rate("mi300x-8", {}, 4 * gib);
  CHECK(rate >= 300e9);
  CHECK(rate <= 325e9);
}

TEST_CASE("the error of a row is of its time: twice as slow is plus one", "[analysis]") {
  std::vector<MeasuredCollective> rows{row_of("H200", "all_reduce", 8, gib, 1)};
  const double predicted = compare(data, rows, {}).rows.at(0).predicted;
  rows[0].time = predicted / 2;
  const Comparison comparison = compare(data, rows, {});
  CHECK(comparison.rows.at(0).error == Approx(1).epsilon(1e-12));
  CHECK(comparison.all.large.rows == 1);
  CHECK(comparison.all.large.median == Approx(1).epsilon(1e-12));
  CHECK(comparison.all.small.rows == 0);
}

TEST_CASE("the worst row is the one farthest off as a factor", "[analysis]") {
  // +60 % is a factor of 1.6, -50 % one of 2.
  std::vector<MeasuredCollective> rows{row_of("H200", "all_reduce", 8, gib, 1),
                                       row_of("H200", "all_reduce", 8, gib, 1)};
  const double predicted = compare(data, rows, {}).rows.at(0).predicted;
  rows[0].time = predicted / 1.6;
  rows[1].time = predicted * 2;
  CHECK(compare(data, rows, {}).all.worst == Approx(-0.5).epsilon(1e-12));
}

TEST_CASE("what the model cannot do is said and not compared", "[analysis]") {
  const auto why = [](const MeasuredCollective& row) {
    const ComparedRow compared = compare(data, std::vector{row}, {}).rows.at(0);
    CHECK_FALSE(compared.compared());
    return compared.note;
  };
  CHECK_THAT(why(row_of("H200", "gather", 8, gib, 1)), Contains("gather is no operation"));
  CHECK_THAT(why(row_of("TPU v5", "all_reduce", 8, gib, 1)), Contains("no machine"));
  CHECK_THAT(why(row_of("H200", "all_reduce", 8, gib, 0)), Contains("neither time nor bus"));
  CHECK_THAT(why(row_of("H200", "all_reduce", 16, gib, 1)), Contains("16 GPUs do not fit on 1 x"));
}
