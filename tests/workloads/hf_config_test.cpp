#include "workloads/model/hf_config.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"
#include "topology/catalog.hpp"
#include "workloads/model/model_catalog.hpp"

using namespace stepsim;
using Catch::Contains;
using Catch::Equals;

namespace {

Model read(const std::string& text) {
  const Document document = parse_document(text, "config.json");
  Model model = read_hf_config(document.root(), "tiny");
  document.finish(Leftovers::allowed);
  return model;
}

std::string told(const std::string& text) {
  try {
    read(text);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

// A config.json with its lines numbered: the architecture in line 2, what differs in the last.
std::string config(std::string_view architecture, std::string_view last,
                   std::string_view layers = "2", std::string_view hidden = "64",
                   std::string_view heads = "4") {
  return fmt::format(R"({{
  "architectures": ["{}"],
  "num_hidden_layers": {},
  "hidden_size": {},
  "num_attention_heads": {},
  "intermediate_size": 96,
  "vocab_size": 100,
  "max_position_embeddings": 512,
  "torch_dtype": "bfloat16", "rope_scaling": {{"type": "linear", "factor": 2.0}}, "pad_token_id": null,
  {}
}}
)",
                     architecture, layers, hidden, heads, last);
}

const std::string moe_keys =
    R"("num_key_value_heads": 2, "num_experts": 8, "moe_intermediate_size": 16, "num_experts_per_tok": )";

}  // namespace

TEST_CASE("a config.json gives the model, and its other keys do not matter", "[workloads]") {
  const Model model = read(config("LlamaForCausalLM", R"("num_key_value_heads": 2)"));
  CHECK(model.name == "tiny");
  CHECK(model.architecture == "LlamaForCausalLM");
  CHECK(model.layers == 2);
  CHECK(model.attention.head_dim == 16);
  CHECK(model.attention.kv_heads == 2);
  CHECK_FALSE(model.tied_embeddings);
}

TEST_CASE("heads have a width of their own where one is given", "[workloads]") {
  const std::string text = config("Qwen3ForCausalLM", R"("head_dim": 32)", "2", "60", "7");
  CHECK(read(text).attention.head_dim == 32);
  CHECK(told(config("LlamaForCausalLM", R"("head_dim": null)", "2", "60", "7")) ==
        "config.json:5: num_attention_heads: 7 heads do not divide hidden_size 60; give head_dim");
}

TEST_CASE("an unknown architecture is no misspelt one unless only its case differs",
          "[workloads]") {
  const auto unread = [](std::string_view name) { return told(config(name, R"("a": 1)")); };
  CHECK(unread("Qwen3MoEForCausalLM") ==
        "config.json:2: architectures: no reader for \"Qwen3MoEForCausalLM\" (did you mean "
        "\"Qwen3MoeForCausalLM\"?); `stepsim list architectures` names those that are known");
  for (const char* name : {"OPTimal", "Qwen3ForSpeech", "RWKV"})
    CHECK(unread(name) ==
          fmt::format("config.json:2: architectures: no reader for \"{}\"; `stepsim "
                      "list architectures` names those that are known",
                      name));
  CHECK(told("{\n\"model_type\": \"llama\"}") ==
        "config.json:1: architectures: is missing; `stepsim list architectures` names those that "
        "are known");
  CHECK_THAT(told("{\n\"architectures\": []}"),
             Equals("config.json:2: architectures: expected one name, found 0"));
}

TEST_CASE("each field that is missing is named", "[workloads]") {
  const std::string text = told("{\n\"architectures\": [\"LlamaForCausalLM\"]}");
  for (const char* key : {"num_hidden_layers", "hidden_size", "num_attention_heads",
                          "intermediate_size", "vocab_size", "max_position_embeddings"})
    CHECK_THAT(text, Contains(fmt::format("config.json:1: {}: is missing", key)));
  CHECK_THAT(told(config("Qwen3MoeForCausalLM", R"("num_experts": 8, "num_experts_per_tok": 2)")),
             Equals("config.json:1: moe_intermediate_size: is missing"));
}

TEST_CASE("numbers are numbers, and within reason", "[workloads]") {
  CHECK(told(config("LlamaForCausalLM", R"("a": 1)", "\"32\"")) ==
        "config.json:3: num_hidden_layers: expected a plain number, found the text \"32\"");
  CHECK(told(config("LlamaForCausalLM", R"("a": 1)", "[2]")) ==
        "config.json:3: num_hidden_layers: expected a plain number, found a list");
  CHECK(told(config("LlamaForCausalLM", R"("a": 1)", "2.5")) ==
        "config.json:3: num_hidden_layers: expected a whole number, found 2.5");
  for (const char* layers : {"0", "-3", "1000000000"})
    CHECK(
        told(config("LlamaForCausalLM", R"("a": 1)", layers)) ==
        fmt::format("config.json:3: num_hidden_layers: expected a number from 1 to 1000, found {}",
                    layers));
  CHECK_THAT(told(config("LlamaForCausalLM", R"("a": 1)", "2", "2000000")),
             Contains("config.json:4: hidden_size: expected a number from 1 to "));
  CHECK(told(config("LlamaForCausalLM", R"("tie_word_embeddings": 1)")) ==
        "config.json:10: tie_word_embeddings: expected true or false, found \"1\"");
}

TEST_CASE("rules across keys are checked", "[workloads]") {
  CHECK(told(config("LlamaForCausalLM", R"("num_key_value_heads": 3)")) ==
        "config.json:10: num_key_value_heads: 4 heads cannot share 3 key-value heads evenly");
  CHECK(told(config("Qwen3MoeForCausalLM", moe_keys + "9")) ==
        "config.json:10: num_experts_per_tok: a token cannot go to 9 of 8 experts (num_experts)");
  CHECK(told(config("Qwen3MoeForCausalLM", moe_keys + R"(2, "mlp_only_layers": [1])")) ==
        "config.json:10: mlp_only_layers: only the first layers may be without experts: 0, 1, ...");
  CHECK(told(config("Qwen3MoeForCausalLM", moe_keys + R"(2, "mlp_only_layers": ["a"])")) ==
        "config.json:10: mlp_only_layers: expected whole numbers, found \"a\"");
}

TEST_CASE("experts stand in some layers or in all", "[workloads]") {
  const Model all = read(config("Qwen3MoeForCausalLM", moe_keys + "2"));
  CHECK(expert_layers(all) == 2);
  CHECK(all.feed_forward.width == 0);  // no layer has it
  const Model half =
      read(config("Qwen3MoeForCausalLM", moe_keys + R"(2, "decoder_sparse_step": 2)"));
  CHECK_FALSE(has_experts(half, 0));
  CHECK(has_experts(half, 1));
  CHECK(half.feed_forward.width == 96);
  const Model upper =
      read(config("Qwen3MoeForCausalLM", moe_keys + R"(2, "mlp_only_layers": [0])"));
  CHECK_FALSE(has_experts(upper, 0));
  const std::string none = moe_keys + R"(2, "mlp_only_layers": [0, 1])";
  CHECK_FALSE(read(config("Qwen3MoeForCausalLM", none)).experts);
}

TEST_CASE("windows and the layers that escape them", "[workloads]") {
  CHECK(read(config("MistralForCausalLM", R"("sliding_window": 128)")).attention.sliding_window ==
        128);
  CHECK(read(config("MistralForCausalLM", R"("sliding_window": null)")).attention.sliding_window ==
        0);
  const std::string off = R"("use_sliding_window": false, "sliding_window": 128)";
  CHECK(read(config("Qwen2ForCausalLM", off)).attention.sliding_window == 0);
  const std::string types =
      R"("sliding_window": 128, "layer_types": ["sliding_attention", "full_attention"])";
  const Model olmo = read(config("Olmo3ForCausalLM", types));
  CHECK(window_of(olmo, 0) == 128);
  CHECK(window_of(olmo, 1) == 0);
  CHECK_THAT(told(config("Olmo3ForCausalLM", R"("layer_types": ["full_attention"])")),
             Contains("layer_types: expected 2 entries, one per layer, found 1"));
  CHECK_THAT(told(config("Olmo3ForCausalLM", R"("layer_types": ["ful_attention", "x"])")),
             Contains("did you mean \"full_attention\"?"));
  const std::string uneven =
      R"("sliding_window": 9, "layer_types": ["full_attention", "sliding_attention"])";
  CHECK_THAT(told(config("Olmo3ForCausalLM", uneven)),
             Contains("the first is layer 1, but layer 2 is none"));
}

TEST_CASE("a nested text tower is the model", "[workloads]") {
  const std::string inner =
      config("x", R"("intermediate_size_mlp": 128, "num_local_experts": 4, "num_experts_per_tok": 1,
  "interleave_moe_layer_step": 2, "attention_chunk_size": 256, "moe_layers": )");
  const auto nested = [&](const std::string& listed) {
    std::string text = inner;
    text.insert(text.rfind("\n}"), listed);
    return R"({"architectures": ["Llama4ForConditionalGeneration"], "vision_config": {"a": 1}, "text_config": )" +
           text + "}";
  };
  const Model model = read(nested("[1]"));
  CHECK(expert_layers(model) == 1);
  CHECK(model.experts->shared_width == 96);
  CHECK(model.feed_forward.width == 128);
  CHECK(model.attention.chunked);
  CHECK_FALSE(read(nested("[]")).experts);
  CHECK_THAT(told(nested("[0]")), Contains("text_config.moe_layers: only each "));
}

TEST_CASE("a model is loaded from a file or its folder and named after the folder", "[workloads]") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.file("my-model"));
  const std::string file = folder.file("my-model/config.json");
  put_bytes(file, config("LlamaForCausalLM", R"("a": 1)"));
  CHECK(load_model({}, file).name == "my-model");
  CHECK(load_model({}, folder.file("my-model")).name == "my-model");
  put_bytes(folder.file("other.json"), config("LlamaForCausalLM", R"("a": 1)"));
  CHECK(load_model({}, folder.file("other.json")).name == "other");
  CHECK_THROWS_WITH(load_model({}, folder.file("none.json")), Contains("none.json"));
  put_bytes(file, config("LlamaForCausalLM", R"("a": 1)", "0"));
  CHECK_THROWS_WITH(load_model({}, file), Contains(file + ":3: num_hidden_layers: expected"));
}

TEST_CASE("a catalogue file must hold what it pins", "[workloads]") {
  const TemporaryFolder data;
  std::filesystem::create_directories(data.file("workloads/models"));
  const auto put = [&](const std::string& tail) {
    put_bytes(data.file("workloads/models/tiny.yaml"),
              "name: tiny\ntitle: Tiny\nsource: a test\nconfig:\n"
              "  architectures: [LlamaForCausalLM]\n  num_hidden_layers: 1\n  hidden_size: 4\n"
              "  intermediate_size: 8\n  num_attention_heads: 2\n  vocab_size: 10\n"
              "  max_position_embeddings: 16\n" +
                  tail);
  };
  const std::int64_t right = 2 * 10 * 4 + 4 * 4 * 4 + 3 * 4 * 8 + 3 * 4;
  put(fmt::format("parameters: {}\n", right));
  CHECK(count_parameters(load_model(Catalogue({data.path()}), "tiny")).total() == right);
  put("parameters: 250\n");
  CHECK_THROWS_WITH(load_model(Catalogue({data.path()}), "tiny"),
                    Contains("tiny.yaml:12: parameters: the file pins 250, but its dimensions give "
                             "252: 2 more"));
  put(fmt::format("  hiden_size: 4\nparameters: {}\n", right));
  CHECK_THROWS_WITH(load_model(Catalogue({data.path()}), "tiny"),
                    Contains("config.hiden_size: unknown key (did you mean \"hidden_size\"?)"));
  CHECK_THROWS_WITH(load_model(Catalogue({data.path()}), "tinny"),
                    Equals("no model \"tinny\" (did you mean \"tiny\"?)"));
}

TEST_CASE("MPT has biases in llm-foundry's class and none in that of transformers", "[workloads]") {
  const auto mpt = [](std::string_view architecture, std::string_view more) {
    return read(
        fmt::format(R"({{"architectures": ["{}"], "d_model": 64, "n_heads": 4, "n_layers": 2,
      "max_seq_len": 128, "vocab_size": 100{}}})",
                    architecture, more));
  };
  const auto numbers = [](const Model& model) { return count_parameters(model).total(); };
  const Model with = mpt("MPTForCausalLM", ""), without = mpt("MptForCausalLM", "");
  CHECK(numbers(with) > numbers(without));
  CHECK(numbers(mpt("MPTForCausalLM", ", \"no_bias\": true")) == numbers(without));
  CHECK(numbers(mpt("MptForCausalLM", ", \"no_bias\": false")) == numbers(with));
}

TEST_CASE("attention and feed-forward that read one norm have one", "[workloads]") {
  const auto norms = [](const Model& model) {
    return count_parameters(model).of(TensorClass::norm);
  };
  const Model phi = read(config("PhiForCausalLM", R"("partial_rotary_factor": 0.5)"));
  CHECK(norms(phi) == (2 + 1) * 2 * 64);  // a layer each, and the last; with biases
  CHECK(phi.attention.rotary == 8);
  CHECK(phi.head_bias);
  CHECK(norms(read(config("CohereForCausalLM", R"("a": 1)"))) == (2 + 1) * 64);
  CHECK_THAT(told(config("PhiForCausalLM", R"("tie_word_embeddings": true)")),
             Contains("a tied head with a bias is not modelled"));
  const auto falcon = [&](const std::string& more) {
    return norms(read(config("FalconForCausalLM", more)));
  };
  CHECK(falcon(R"("multi_query": true)") == (2 + 1) * 2 * 64);
  CHECK(falcon(R"("parallel_attn": false)") == (4 + 1) * 2 * 64);
  CHECK(falcon(R"("new_decoder_architecture": true, "num_kv_heads": 2)") == (4 + 1) * 2 * 64);
}

TEST_CASE("older models: spare positions, a norm of the embedding, one head of keys",
          "[workloads]") {
  const std::string opt = R"("ffn_dim": 256, "word_embed_proj_dim": )";
  const Model small = read(config("OPTForCausalLM", opt + "64"));
  CHECK(count_parameters(small).of(TensorClass::embedding) == (100 + 512 + 2) * 64);
  CHECK_THAT(told(config("OPTForCausalLM", opt + "32")),
             Contains("a table narrower than the layers is not modelled"));
  const Model bloom = read(config("BloomForCausalLM", R"("seq_length": 128)"));
  CHECK(bloom.positions == Positions::alibi);
  CHECK(bloom.feed_forward.width == 256);
  CHECK(count_parameters(bloom).of(TensorClass::norm) == (1 + 4 + 1) * 2 * 64);
  CHECK(read(config("FalconForCausalLM", R"("a": 1)")).attention.kv_heads == 1);
  CHECK(read(config("QWenLMHeadModel", R"("a": 1)")).feed_forward.width == 48);
  const Model alibi = read(R"({"architectures": ["BaichuanForCausalLM"], "num_hidden_layers": 2,
    "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 96, "vocab_size": 100,
    "model_max_length": 256})");
  CHECK(alibi.positions == Positions::alibi);
  CHECK(alibi.longest_sequence == 256);
}

TEST_CASE("a tower is read as what it is called", "[workloads]") {
  const Model llava = read(R"({"architectures": ["LlavaForConditionalGeneration"],
    "text_config": {"model_type": "llama", "vocab_size": 32064}, "vision_config": {"a": 1}})");
  CHECK(llava.vocabulary == 32064);
  CHECK(llava.layers == 32);
  CHECK(llava.hidden == 4096);
  std::string inner = config("Qwen3ForCausalLM", R"("head_dim": 32)");
  const Model intern =
      read(R"({"architectures": ["InternVLChatModel"], "llm_config": )" + inner + "}");
  CHECK(intern.attention.qk_norm == Attention::QkNorm::per_head);
  CHECK_THAT(told("{\"architectures\": [\"InternVLChatModel\"],\n\"llm_config\": {"
                  "\"architectures\": [\"RWKV\"]}}"),
             Contains("config.json:2: llm_config.architectures: no reader for \"RWKV\""));
  CHECK_THAT(told("{\"architectures\": [\"InternVLChatModel\"]}"),
             Contains("text_config: is missing: what the text tower is made of"));
}

TEST_CASE("what chooses the tokens that are attended to is counted in each layer", "[workloads]") {
  const std::string latent =
      R"("q_lora_rank": 32, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8,
      "v_head_dim": 16, "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16,
      "index_n_heads": 2, "index_head_dim": 24)";
  const Model without = read(config("DeepseekV3ForCausalLM", latent, "4"));
  const Model with = read(config("DeepseekV32ForCausalLM", latent, "4"));
  REQUIRE(with.attention.indexer.has_value());
  CHECK(with.attention.indexer->chosen == 2048);
  CHECK(with.experts->first_dense == 1);
  const auto attends = [](const Model& model) {
    std::int64_t sum = 0;
    for (const Module& module : layer_modules(model, 0))
      for (const Tensor& tensor : module.tensors)
        if (module.name.starts_with("self_attn")) sum += tensor.elements;
    return sum;
  };
  // Queries and the weights of both heads, one key, and its norm with a bias.
  CHECK(attends(with) - attends(without) == 32 * 48 + 64 * 2 + 64 * 24 + 2 * 24);
  CHECK(read(config("GlmMoeDsaForCausalLM", latent, "4")).experts->first_dense == 3);
  CHECK_THAT(told(config("GlmMoeDsaForCausalLM", latent + R"(, "index_topk_freq": 4)", "4")),
             Contains("index_topk_freq: layers that share what one of them chose"));
}

TEST_CASE("a norm without weights has no tensor and is called all the same", "[workloads]") {
  const Model olmo = read(config("OlmoForCausalLM", R"("clip_qkv": null)"));
  CHECK(count_parameters(olmo).of(TensorClass::norm) == 0);
  const Model llama = read(config("LlamaForCausalLM", R"("a": 1)"));
  CHECK(layer_modules(olmo, 0).size() == layer_modules(llama, 0).size());
}

TEST_CASE("attention and a mixer in one layer read what one norm makes", "[workloads]") {
  const std::string mamba = R"("mamba_d_ssm": 96, "mamba_n_heads": 6, "mamba_d_head": 16,
      "mamba_d_state": 8, "mamba_rms_norm": )";
  const Model bare = read(config("FalconH1ForCausalLM", mamba + "false"));
  CHECK(attention_layers(bare) == 2);
  CHECK(mixer_layers(bare) == 2);
  CHECK(count_parameters(bare).of(TensorClass::norm) == (2 * 2 + 1) * 64);
  const Model normed = read(config("FalconH1ForCausalLM", mamba + "true"));
  CHECK(count_parameters(normed).of(TensorClass::norm) == (2 * 2 + 1) * 64 + 2 * 96);
  CHECK_THAT(told(config("FalconH1ForCausalLM", R"("mamba_d_ssm": 96, "mamba_n_heads": 5,
      "mamba_d_head": 16)")),
             Contains("heads times mamba_d_head must be mamba_d_ssm"));
}

TEST_CASE("a number for each layer must be the same in all", "[workloads]") {
  const std::string last =
      R"("num_experts": 4, "num_shared_expert": [1, 1], "moe_intermediate_size": [16, 16],
      "use_cla": false, "moe_topk": )";
  const Model model = read(config("HunYuanMoEV1ForCausalLM", last + "[2, 2]"));
  CHECK(model.experts->per_token == 2);
  CHECK(model.experts->width == 16);
  CHECK(model.experts->shared_width == 96);
  CHECK(model.attention.qk_norm == Attention::QkNorm::per_head);
  CHECK_THAT(told(config("HunYuanMoEV1ForCausalLM", last + "[2, 1]")),
             Contains("moe_topk: only the same number in all layers is modelled"));
}

TEST_CASE("latent attention beside a dense feed-forward block", "[workloads]") {
  const Model model = read(config("MiniCPM3ForCausalLM", R"("q_lora_rank": 32, "kv_lora_rank": 16,
      "qk_rope_head_dim": 8, "qk_nope_head_dim": 8)"));
  CHECK(model.attention.latent->value == 16);
  CHECK_FALSE(model.experts.has_value());
  CHECK(model.tied_embeddings);
}

TEST_CASE("what is known and not read says why", "[workloads]") {
  CHECK_THAT(told(config("Gemma3nForConditionalGeneration", R"("a": 1)")),
             Contains("no reader for \"Gemma3nForConditionalGeneration\": four sums"));
  CHECK_THAT(told(config("MllamaForConditionalGeneration", R"("a": 1)")),
             Contains("layers that attend to images are not modelled"));
}
