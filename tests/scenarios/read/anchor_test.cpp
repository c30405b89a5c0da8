// Files of anchors, and of faults.
#include "scenarios/read/anchor.hpp"

#include <cmath>

#include "scenarios/load/load_scenario.hpp"
#include "scenarios/read/faults.hpp"
#include "sim/base/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"
#include "tests/support/temporary_folder.hpp"

namespace stepsim {
namespace {

Anchor anchor_of(std::string node, std::string stack = "deepspeed-hf-rocm") {
  auto draws = std::make_shared<WeightedDraws>();
  draws->of = 8;
  draws->draws = {{3, 0.25, 0.9}, {5, 0.75, 1.2}};
  draws->entries = {{"gpu", "mi300x"}, {"node", std::move(node)}, {"stack", std::move(stack)}};
  draws->places = {{"node.host.core_speed", 0.25}};
  draws->factor = 1.5;
  draws->runs = 1;
  draws->shared = 0.5;
  Anchor anchor;
  anchor.title = "tiny.yaml beside train.log";
  anchor.said = "50 % slower than the catalogue, mostly the host";
  anchor.from = {"train.log: a progress bar"};
  anchor.effective = 1.6;
  anchor.moved = {{"node.host.core_speed", 0.25, "1 (0.7 to 1.2)", "0.8 (0.7 to 0.9)"}};
  anchor.draws = draws;
  return anchor;
}

const std::string tiny = STEPSIM_SOURCE_DATA "/tests/cli/tiny.yaml";

}  // namespace

TEST_CASE("an anchor is written and read back", "[anchor]") {
  const std::string text = anchor_text(anchor_of("mi300x-8"));
  const Anchor read = parse_anchor(text, "file");
  CHECK(anchor_text(read) == text);
  CHECK(read.draws->draws.size() == 2);
  CHECK(read.draws->draws[1].weight == Approx(0.75));
  CHECK(read.draws->factor == Approx(1.5));
}

TEST_CASE("an anchor names every problem at its line", "[anchor]") {
  std::string text = anchor_text(anchor_of("mi300x-8"));
  text.replace(text.find("weight: 0.75"), 12, "weight: 7.50");
  text.replace(text.find("said:"), 5, "sais:");
  try {
    parse_anchor(text, "my.anchor.yaml");
    FAIL("was read");
  } catch (const UserError& error) {
    REQUIRE(error.problems().size() >= 3);
    CHECK_THAT(error.what(), Catch::Contains("said"));
    CHECK_THAT(error.what(), Catch::Contains("weight"));
  }
}

TEST_CASE("weights that are all zero are refused", "[anchor]") {
  std::string text = anchor_text(anchor_of("mi300x-8"));
  for (const std::string weight : {"0.25000", "0.75000"})
    text.replace(text.find(weight), weight.size(), "0");
  CHECK_THROWS_WITH(parse_anchor(text, "file"), Catch::Contains("weights are above zero"));
}

TEST_CASE("an anchor multiplies what no constant explains, on its own machine", "[anchor]") {
  const TemporaryFolder folder;
  const std::string own = folder.file("own.anchor.yaml"), other = folder.file("b.anchor.yaml");
  put_bytes(own, anchor_text(anchor_of("mi300x-8")));
  Anchor elsewhere = anchor_of("mi300x-8");
  auto draws = std::make_shared<WeightedDraws>(*elsewhere.draws);
  draws->entries.front().second = "h100-sxm";
  elsewhere.draws = draws;
  put_bytes(other, anchor_text(elsewhere));
  const auto read = [&](std::vector<Setting> settings) {
    return load_scenario(source_data(), tiny, settings);
  };
  const Scenario plain = read({}), anchored = read({{"anchor.file", own}}),
                 foreign = read({{"anchor.file", other}}),
                 none = read({{"anchor.file", own}, {"anchor.none", "true"}});
  CHECK(anchored.stack.unexplained.number() == Approx(1.5 * plain.stack.unexplained.number()));
  CHECK(foreign.stack.unexplained.number() == Approx(plain.stack.unexplained.number()));
  CHECK(none.stack.unexplained.number() == Approx(plain.stack.unexplained.number()));
  CHECK(none.assumptions.empty());
  REQUIRE(anchored.assumptions.size() == 1);
  CHECK(anchored.assumptions.front().taken ==
        "anchored on your run of tiny.yaml beside train.log: 50 % slower than the catalogue, "
        "mostly the host");
  CHECK_THAT(foreign.assumptions.front().why, Catch::Contains("the run was of another gpu"));
}

TEST_CASE("an anchor holds for the same program with other kernels", "[anchor]") {
  const TemporaryFolder folder;
  const std::string file = folder.file("trl.anchor.yaml");
  put_bytes(file, anchor_text(anchor_of("mi300x-8", "trl-rocm")));
  const auto factor = [&](const std::string& stack) {
    const auto unexplained = [&](std::vector<Setting> settings) {
      settings.emplace_back("stack", stack);
      return load_scenario(source_data(), tiny, settings).stack.unexplained.number();
    };
    return unexplained({{"anchor.file", file}}) / unexplained({});
  };
  CHECK(factor("trl-rocm") == Approx(1.5));
  CHECK(factor("trl-liger-rocm") == Approx(1.5));
  CHECK(factor("axolotl-rocm") == Approx(1));
}

TEST_CASE("draws of an anchor come as often as they count", "[anchor]") {
  const Anchor anchor = anchor_of("mi300x-8");
  std::size_t slow = 0;
  for (std::uint32_t i = 0; i < 8; ++i) {
    const MaybeDraw draw = anchored(anchor, Draw{.seed = 1, .sample = i, .of = 8});
    slow += time_factor(*draw) > 1.05 ? 1 : 0;
  }
  CHECK(slow == 6);
}

TEST_CASE("an anchor in a catalogue of one's own is taken where it is of the machine", "[anchor]") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.file("anchors"));
  put_bytes(folder.file("anchors/a.anchor.yaml"), anchor_text(anchor_of("h100-8")));
  const Catalogue other({STEPSIM_SOURCE_DATA, folder.path()});
  CHECK(load_scenario(other, tiny).assumptions.empty());
  put_bytes(folder.file("anchors/b.anchor.yaml"), anchor_text(anchor_of("mi300x-8")));
  const Catalogue own({STEPSIM_SOURCE_DATA, folder.path()});
  CHECK(load_scenario(own, tiny).assumptions.size() == 1);
}

TEST_CASE("every fault is read, and its constants are factors", "[anchor]") {
  const std::vector<FaultKind> kinds = fault_kinds(source_data());
  CHECK(kinds.size() >= 15);
  double priors = 0;
  for (const FaultKind& kind : kinds) priors += kind.prior;
  CHECK(priors == Approx(1).epsilon(0.2));
  CHECK_THROWS_WITH(
      parse_fault_kind("says: x\nprior: 0.1\nlevels: [{gpu.gemm.rate: 5}]\ntest: a\nshows: b\n"
                       "cure: c\n",
                       "f.yaml", "f"),
      Catch::Contains("f.yaml:3") && Catch::Contains("expected a factor of the constant"));
}

TEST_CASE("a level is of the constants that a scenario has", "[anchor]") {
  const Scenario scenario = load_scenario(source_data(), tiny);
  const auto settings = settings_of_level(
      {{"node.links.xgmi.bandwidth", "x0.5"}, {"node.links.nvlink.bandwidth", "x0.5"}}, scenario);
  REQUIRE(settings.size() == 1);
  CHECK(settings.front().first == "node.links.xgmi.bandwidth");
}

TEST_CASE("a host's pace is how long all that it does takes", "[anchor]") {
  const auto speed = [](std::vector<Setting> settings) {
    return load_scenario(source_data(), tiny, settings).cluster.node.host.core_speed.number();
  };
  CHECK(speed({{"stack.host.pace", "1.5"}}) == Approx(speed({}) / 1.5));
}

}  // namespace stepsim
