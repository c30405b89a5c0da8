// Rows of tables of steps, as tests of what is made of them write them.
#pragma once

#include <string>
#include <string_view>

#include "scenarios/rows/expressed_row.hpp"
#include "tests/support/catch.hpp"

namespace stepsim {

inline constexpr std::string_view header =
    "id,hardware,nodes,gpus,interconnect,framework,model,params_total_B,layers,hidden,heads,kv_"
    "heads,"
    "ffn,vocab,seq_len,strategy,zero_stage,dp_shard,dp_replicate,tp,pp,offload,act_ckpt,precision,"
    "compile,micro_batch,grad_accum,global_batch_seqs,tok_s_gpu,step_s,mfu_pct,flops_def,mem_GB,"
    "mem_unit\n";
inline constexpr std::string_view usual =
    "r,H100-80GB,1,8,,torchtitan "
    "(FSDP2),Llama-3.1-8B,8.03,32,4096,32,8,14336,128256,8192,FSDP2,3,8,1,"
    "1,1,none,full,bf16,no,2,1,16,5762,2.84,33,,70,GiB\n";

inline StepRow row_of(std::string_view line) {
  const auto rows = step_rows(parse_csv(std::string(header) + std::string(line), "r.csv"));
  REQUIRE(rows.size() == 1);
  return rows.front();
}

inline StepRow changed(const std::string& from, const std::string& to) {
  std::string line(usual);
  const std::size_t place = line.find(from);
  REQUIRE(place != std::string::npos);
  return row_of(line.replace(place, from.size(), to));
}

inline StepRow without_widths(StepRow row) {
  row.layers.reset();
  row.hidden.reset();
  return row;
}

inline const RowCatalog& catalog() {
  static const RowCatalog all = row_catalog(STEPSIM_SOURCE_DATA);
  return all;
}

}  // namespace stepsim
