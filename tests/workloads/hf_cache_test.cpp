// Models by the names of Hugging Face, and a cache made for the test.
#include "workloads/model/hf_cache.hpp"

#include <filesystem>

#include "sim/base/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"
#include "tests/support/temporary_folder.hpp"
#include "topology/catalog.hpp"
#include "workloads/model/model_catalog.hpp"

using namespace stepsim;

namespace {

const Catalogue& data = source_data();

void put_snapshot(const TemporaryFolder& home, const std::string& commit, int layers,
                  const std::string& name = "Own-Model") {
  const std::string folder = home.file("hub/models--someone--" + name + "/snapshots/" + commit);
  std::filesystem::create_directories(folder);
  put_bytes(folder + "/config.json",
            "{\"architectures\": [\"LlamaForCausalLM\"], \"num_hidden_layers\": " +
                std::to_string(layers) +
                ", \"hidden_size\": 64, \"num_attention_heads\": 4, \"intermediate_size\": 96, "
                "\"vocab_size\": 100, \"max_position_embeddings\": 512}");
}

}  // namespace

TEST_CASE("an id is two names with a slash between, and no path", "[workloads]") {
  CHECK(is_hf_id("Qwen/Qwen3-4B"));
  CHECK(is_hf_id("meta-llama/Llama-3.1-8B"));
  for (const char* other : {"qwen3-4b", "./Qwen3-4B", "../a", "/a/b", "a/b/c", "a/config.json",
                            "/a", "a/", "~/a", "a b/c"})
    CHECK_FALSE(is_hf_id(other));
  const TemporaryFolder folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::create_directories(folder.file("Qwen/Qwen3-4B"));
  std::filesystem::current_path(folder.path());
  CHECK_FALSE(is_hf_id("Qwen/Qwen3-4B"));  // a folder here
  std::filesystem::current_path(before);
}

TEST_CASE("an id leads to the catalogue, by its own name or by one that a file lists",
          "[workloads]") {
  CHECK(resolve_model(data, "Qwen/Qwen3-4B") == "qwen3-4b");
  CHECK(resolve_model(data, "LiquidAI/LFM2-1.2B") == "lfm2-1.2b");
  CHECK(resolve_model(data, "meta-llama/Llama-3.1-8B-Instruct") == "llama-3.1-8b");
  CHECK(resolve_model(data, "META-LLAMA/llama-3.1-8b-instruct") == "llama-3.1-8b");
  CHECK(resolve_model(data, "qwen3-4b") == "qwen3-4b");
  CHECK(load_model(data, "ibm-granite/granite-4.0-350m").name == "granite-4.0-350m");
}

TEST_CASE("a copy by somebody else, or stored in fewer bits, is the model of that name",
          "[workloads]") {
  for (const auto& [name, model] :
       {std::pair{"NousResearch/Meta-Llama-3.1-8B-Instruct", "llama-3.1-8b"},
        {"unsloth/Qwen2.5-7B-Instruct-unsloth-bnb-4bit", "qwen2.5-7b"},
        {"unsloth/Llama-3.2-3B-bnb-4bit", "llama-3.2-3b"},
        {"unsloth/gpt-oss-20b-BF16", "gpt-oss-20b"},
        {"NousResearch/Llama-2-7b-hf", "llama-2-7b"},
        {"Qwen/Qwen3-8B-FP8", "qwen3-8b"},
        {"Qwen2.5-Coder-7B-Instruct", "qwen2.5-7b"},
        {"Qwen3-8B", "qwen3-8b"}})
    CHECK(resolve_model(data, name) == model);
  CHECK(resolve_model(data, "someone/Qwen3-8B-reward") == "someone/Qwen3-8B-reward");
  CHECK(resolve_model(data, "Qwen3-9B") == "Qwen3-9B");
}

TEST_CASE("a snapshot in the local cache goes before a copy's name", "[workloads]") {
  const TemporaryFolder home;
  const Catalogue with({STEPSIM_SOURCE_DATA}, home.file("hub"));
  put_snapshot(home, "aaa", 2, "Qwen3-8B-FP8");
  CHECK(load_model(with, "someone/Qwen3-8B-FP8").layers == 2);
  CHECK(load_model(with, "Qwen/Qwen3-8B-FP8").layers == 36);
}

TEST_CASE("an id leads to a snapshot in the local cache, that of the main branch first",
          "[workloads]") {
  const TemporaryFolder home;
  const Catalogue with({STEPSIM_SOURCE_DATA}, home.file("hub"));
  CHECK_FALSE(cached_config(home.file("hub"), "someone/Own-Model"));
  put_snapshot(home, "aaa", 2);
  put_snapshot(home, "bbb", 3);
  CHECK(load_model(with, "someone/Own-Model").name == "Own-Model");
  CHECK(load_model(with, "someone/Own-Model").layers == 3);  // the last by name
  std::filesystem::create_directories(home.file("hub/models--someone--Own-Model/refs"));
  put_bytes(home.file("hub/models--someone--Own-Model/refs/main"), "aaa");
  CHECK(load_model(with, "someone/Own-Model").layers == 2);
  CHECK(load_model(with, "qwen3-4b").name == "qwen3-4b");
}

TEST_CASE("an id that leads nowhere is told where it was looked for", "[workloads]") {
  const TemporaryFolder home;
  const Catalogue with({STEPSIM_SOURCE_DATA}, home.file("hub"));
  CHECK_THROWS_WITH(load_model(with, "someone/Own-Model"),
                    Catch::Equals("\"someone/Own-Model\" is neither a model of the catalogue "
                                  "(`stepsim list models`), nor a folder or file here, nor in the "
                                  "local cache of Hugging Face (" +
                                  home.file("hub/models--someone--Own-Model") + ")"));
  CHECK_THROWS_WITH(load_model(data, "someone/Own-Model"),
                    Catch::EndsWith("nor in the local cache of Hugging Face"));
}
