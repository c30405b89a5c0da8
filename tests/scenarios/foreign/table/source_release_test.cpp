#include "scenarios/foreign/table/source_release.hpp"

#include <algorithm>

#include "scenarios/load/load_scenario.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"
#include "tests/support/temporary_folder.hpp"

namespace stepsim {
namespace {

std::string found(std::string_view text) {
  const auto release = release_in(text, "trl");
  return release ? release->release + " " + release->where : "";
}

}  // namespace

TEST_CASE("requirements, lock files and images name a release", "[releases]") {
  CHECK(found("torch==2.1\ntrl==0.14.0\n") == "0.14.0 2");
  CHECK(found("trl[peft]==0.14\n") == "0.14 1");
  CHECK(found("TRL ~= 0.14.1 ; python_version > '3'\n") == "0.14.1 1");
  CHECK(found("dependencies = [\"accelerate>=1\", \"trl==0.15.2\"]\n") == "0.15.2 1");
  CHECK(found("trl = \"^0.12\"\n") == "0.12 1");
  CHECK(found("  - trl=0.11.4=py_0\n") == "0.11.4 1");
  CHECK(found("[[package]]\nname = \"trl\"\nversion = \"0.9.6\"\n") == "0.9.6 3");
  CHECK(found("FROM ghcr.io/huggingface/trl:0.17.0\n") == "0.17.0 1");
  CHECK(found("trl<=0.19.1\n") == "0.19.1 1");
  CHECK(found("# trl==0.14.0\n").empty());
  CHECK(found("trl>=0.14.0\n").empty());
  CHECK(found("trl<0.20\n").empty());
  CHECK(found("trl\n").empty());
  CHECK(found("trlx==0.14.0\nmy-trl==0.3\n").empty());
  CHECK(found("trl==main\ntrl==\n[").empty());
}

TEST_CASE("a release is asked for from the command line to the keys", "[releases]") {
  const TemporaryFolder folder;
  const Catalogue& data = source_data();
  put_bytes(folder.file("requirements.txt"), "trl==0.14.0\n");
  const std::vector<std::pair<std::string, std::string>> set{{"releases.trl", "0.9"}};
  const std::string file = folder.file("sft.yaml");
  CHECK(release_around({.data = data, .file = file, .settings = set}, "trl", {})->release == "0.9");
  const auto beside = release_around({.data = data, .file = file, .settings = {}}, "trl", {});
  REQUIRE(beside);
  CHECK(beside->release == "0.14.0");
  CHECK(beside->where == "beside requirements.txt:1");
  const TemporaryFolder other;
  const auto by_keys =
      release_around({.data = data, .file = other.file("sft.yaml"), .settings = {}}, "trl",
                     {"packing", "max_seq_length"});
  REQUIRE(by_keys);
  CHECK(by_keys->release == "0.19.1");
  CHECK_FALSE(
      release_around({.data = data, .file = other.file("sft.yaml"), .settings = {}}, "trl", {}));
}

TEST_CASE("a file of TRL means another step under an older release", "[releases]") {
  const TemporaryFolder folder;
  put_bytes(folder.file("sft.yaml"),
            "model_name_or_path: Qwen/Qwen3-0.6B\nper_device_train_batch_size: 4\n"
            "max_length: 1024\ndataset_text_field: text\n");
  const auto under = [&](const std::string& release) {
    std::vector<Setting> settings{{std::string(source_kind_setting), "trl"}};
    if (!release.empty()) settings.emplace_back("releases.trl", release);
    return load_scenario(source_data(), folder.file("sft.yaml"), settings);
  };
  const Scenario newest = under(""), old = under("0.14");
  CHECK(newest.strategy.checkpointing == Checkpointing::full);
  CHECK(newest.strategy.cross_entropy == CrossEntropy::fused);
  CHECK_FALSE(newest.strategy.precision.whole());
  CHECK(old.strategy.checkpointing == Checkpointing::none);
  CHECK(old.strategy.cross_entropy == CrossEntropy::logits);
  CHECK(old.strategy.precision.whole());
  const auto said = std::ranges::find(old.said, "strategy.checkpointing", &SaidKey::path);
  REQUIRE(said != old.said.end());
  CHECK(said->origin.source == "release trl 0.14");
  // A file beside it pins the release.
  put_bytes(folder.file("requirements.txt"), "trl==0.21.0\n");
  CHECK(under("").strategy.checkpointing == Checkpointing::none);
  CHECK_FALSE(under("").strategy.precision.whole());
}

}  // namespace stepsim
