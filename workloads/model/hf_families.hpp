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
using FinishFamily = void(const Table& root, Model& model);
FinishFamily finish_baichuan, finish_bert, finish_bloom, finish_chatglm, finish_dbrx,
    finish_deberta, finish_deepseek_v32, finish_distilbert, finish_falcon, finish_falcon_h1,
    finish_glm_dsa, finish_gpt2, finish_gpt_bigcode, finish_gpt_neo, finish_gptj,
    finish_granite_hybrid, finish_hunyuan_moe, finish_jamba, finish_lfm2, finish_lfm2_moe,
    finish_llama4, finish_modernbert, finish_mpt, finish_mpt_of_transformers, finish_nemotron_h,
    finish_opt, finish_qwen1, finish_qwen3_5, finish_qwen3_next, finish_roberta;

// Returns the tower beside a language model of that width; nothing where none is known.
std::optional<Tower> read_tower(const Table& root, std::int64_t hidden);

}  // namespace stepsim
