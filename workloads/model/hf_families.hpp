// Families of config.json are read by rules, and some by code of their own as well.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/base/config.hpp"
#include "workloads/model/hf_config.hpp"
#include "workloads/model/model.hpp"

namespace stepsim {

// Returns a file of workloads/model/ as it was compiled in.
std::string_view model_asset(std::string_view name);
// Reads a family by its rules in architectures.yaml; nothing where it has none.
std::optional<Model> read_family(const Table& root, std::string_view family);

// These read what rules cannot say, behind them.
void finish_baichuan(const Table& root, Model& model);
void finish_bert(const Table& root, Model& model);
void finish_bloom(const Table& root, Model& model);
void finish_chatglm(const Table& root, Model& model);
void finish_dbrx(const Table& root, Model& model);
void finish_deberta(const Table& root, Model& model);
void finish_deepseek_v32(const Table& root, Model& model);
void finish_distilbert(const Table& root, Model& model);
void finish_falcon(const Table& root, Model& model);
void finish_falcon_h1(const Table& root, Model& model);
void finish_glm_dsa(const Table& root, Model& model);
void finish_gpt2(const Table& root, Model& model);
void finish_gpt_bigcode(const Table& root, Model& model);
void finish_gpt_neo(const Table& root, Model& model);
void finish_gptj(const Table& root, Model& model);
void finish_granite_hybrid(const Table& root, Model& model);
void finish_hunyuan_moe(const Table& root, Model& model);
void finish_jamba(const Table& root, Model& model);
void finish_lfm2(const Table& root, Model& model);
void finish_lfm2_moe(const Table& root, Model& model);
void finish_llama4(const Table& root, Model& model);
void finish_modernbert(const Table& root, Model& model);
void finish_mpt(const Table& root, Model& model);
void finish_mpt_of_transformers(const Table& root, Model& model);
void finish_nemotron_h(const Table& root, Model& model);
void finish_opt(const Table& root, Model& model);
void finish_qwen1(const Table& root, Model& model);
void finish_qwen3_5(const Table& root, Model& model);
void finish_qwen3_next(const Table& root, Model& model);
void finish_roberta(const Table& root, Model& model);

// Returns the tower beside a language model of that width; nothing where none is known.
std::optional<Tower> read_tower(const Table& root, std::int64_t hidden);

}  // namespace stepsim
