// These tests ask a catalogue for its files, and for what is kept with it.
#include "topology/catalog.hpp"

#include <filesystem>

#include "tests/support/exactly.hpp"
#include "tests/support/source_data.hpp"
#include "tests/support/temporary_folder.hpp"

namespace stepsim {
namespace {

using Catch::Contains;

struct Counted {
  int count = 0;
};

TEST_CASE("copies of a catalogue share what is kept with it, a new one has none of it",
          "[topology]") {
  const Catalogue first({STEPSIM_SOURCE_DATA});
  first.kept<Counted>().count = 1;
  const Catalogue copy = first, fresh({STEPSIM_SOURCE_DATA});
  CHECK(copy.kept<Counted>().count == 1);
  CHECK(fresh.kept<Counted>().count == 0);
  CHECK(&copy.kept<Counted>() == &first.kept<Counted>());
}

TEST_CASE("a file is that of the uppermost folder that has it", "[topology]") {
  const TemporaryFolder own;
  const Catalogue both({STEPSIM_SOURCE_DATA, own.path()}, "hub");
  const std::string below = both.file("topology/variation.yaml");
  CHECK(below == STEPSIM_SOURCE_DATA "/topology/variation.yaml");
  CHECK_FALSE(both.is_overlay(below));
  std::filesystem::create_directories(own.file("topology"));
  put_bytes(own.file("topology/variation.yaml"), "");
  CHECK(both.file("topology/variation.yaml") == own.file("topology/variation.yaml"));
  CHECK(both.is_overlay(both.file("topology/variation.yaml")));
  CHECK(both.places("topology").size() == 2);
  CHECK(both.file("absent") == STEPSIM_SOURCE_DATA "/absent");
  CHECK(both.hub() == "hub");
}

TEST_CASE("two catalogues keep each its own answers", "[topology]") {
  const TemporaryFolder own;
  std::filesystem::create_directories(own.file("topology/nodes"));
  put_bytes(own.file("topology/nodes/h100-8.yaml"),
            "name: h100-8\ntitle: halved\nlike: h100-8\nparts: {gpu: 4}\n");
  const Catalogue& installed = source_data();
  const Catalogue both({STEPSIM_SOURCE_DATA, own.path()});
  const Cluster whole = load_cluster(installed, {.name = "h100-8"});
  const Cluster half = load_cluster(both, {.name = "h100-8"});
  CHECK(whole.node.count(PartKind::gpu) == 8);
  CHECK(half.node.count(PartKind::gpu) == 4);
  CHECK(whole.graph.links == load_cluster(installed, {.name = "h100-8"}).graph.links);
  CHECK(half.graph.links.size() < whole.graph.links.size());
}

}  // namespace
}  // namespace stepsim
