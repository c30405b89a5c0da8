// There is one reader per family of config.json; the table in hf_config.cpp gives them their names.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/base/config.hpp"
#include "workloads/model/model.hpp"

namespace stepsim {

Model read_llama(const Table& root);
Model read_llama_tower(const Table& root);
Model read_mistral_first(const Table& root);
Model read_internlm(const Table& root);
Model read_mistral(const Table& root);
Model read_qwen2(const Table& root);
Model read_qwen3(const Table& root);
Model read_phi3(const Table& root);
Model read_internlm2(const Table& root);
Model read_glm(const Table& root);
Model read_glm4(const Table& root);
Model read_seed_oss(const Table& root);
Model read_apertus(const Table& root);
Model read_exaone4(const Table& root);
Model read_olmo(const Table& root);
Model read_olmo2(const Table& root);
Model read_olmo3(const Table& root);
Model read_gemma(const Table& root);
Model read_gemma2(const Table& root);
Model read_gemma3(const Table& root);

Model read_cohere(const Table& root);
Model read_cohere2(const Table& root);
Model read_stablelm(const Table& root);
Model read_qwen1(const Table& root);
Model read_baichuan(const Table& root);
Model read_chatglm(const Table& root);
Model read_exaone3(const Table& root);
Model read_minicpm(const Table& root);
Model read_minicpm3(const Table& root);
Model read_ernie(const Table& root);
Model read_nemotron(const Table& root);

Model read_gpt2(const Table& root);
Model read_opt(const Table& root);
Model read_bloom(const Table& root);
Model read_falcon(const Table& root);
Model read_gptj(const Table& root);
Model read_gpt_neo(const Table& root);
Model read_gpt_bigcode(const Table& root);
Model read_phi(const Table& root);
Model read_mpt(const Table& root);
Model read_mpt_of_transformers(const Table& root);
Model read_gpt_neox(const Table& root);
Model read_starcoder2(const Table& root);

Model read_lfm2(const Table& root);
Model read_lfm2_moe(const Table& root);
Model read_granite_hybrid(const Table& root);
Model read_falcon_h1(const Table& root);
Model read_jamba(const Table& root);
Model read_nemotron_h(const Table& root);

Model read_mixtral(const Table& root);
Model read_deepseek_v1(const Table& root);
Model read_phimoe(const Table& root);
Model read_dbrx(const Table& root);
Model read_olmoe(const Table& root);
Model read_minimax_m2(const Table& root);
Model read_ernie_moe(const Table& root);
Model read_glm4_moe_lite(const Table& root);
Model read_qwen2_moe(const Table& root);
Model read_qwen3_moe(const Table& root);
Model read_glm4_moe(const Table& root);
Model read_deepseek(const Table& root);
Model read_deepseek_v32(const Table& root);
Model read_glm_dsa(const Table& root);
Model read_hunyuan_moe(const Table& root);
Model read_deepseek_v2(const Table& root);
Model read_granite_moe(const Table& root);
Model read_qwen3_5(const Table& root);
Model read_qwen3_5_moe(const Table& root);
Model read_qwen3_next(const Table& root);
Model read_bailing_moe(const Table& root);
Model read_bailing_moe_v2(const Table& root);
Model read_llama4(const Table& root);
Model read_gpt_oss(const Table& root);

// Returns the tower beside a language model of that width; nothing where none is known.
std::optional<Tower> read_tower(const Table& root, std::int64_t hidden);

Model read_bert(const Table& root);
Model read_roberta(const Table& root);
Model read_distilbert(const Table& root);
Model read_deberta(const Table& root);
Model read_modernbert(const Table& root);

}  // namespace stepsim
