// Trainers over Hugging Face's models share these words for adapters: rank, matrices, dropout and
// the format of the frozen weights.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/foreign/table/mapped_source.hpp"

namespace stepsim {

struct AdapterWords {
  std::string_view rank_key, modules_key;
  std::int64_t usual_rank = 8;
  std::int64_t rank = 0;                              // 0: what its key says, else the usual one
  std::optional<std::vector<std::string>> modules{};  // none: what their key says
  std::string usual_modules{};  // where no module is said; empty: queries and values
  std::string format{};         // of workloads/formats, of what is frozen; empty: 16 bits
  std::string_view format_key{};
  std::string_view whole_key{};    // of modules that are trained whole beside them
  std::string_view dora_key{};     // turns DoRA on
  std::string_view dropout_key{};  // a share of each adapter's input
  // Holds where the file is silent; none: the stack's own default does.
  std::optional<double> usual_dropout{};
  bool fused = false;  // functions around a block's matrices
  std::string_view fused_key{};
};
// Returns what bitsandbytes stores, by what people say of it: its type ("nf4"; empty: that one) and
// whether scales are quantised as well; `bits` is 4 or 8, else "".
std::string bitsandbytes_format(std::int64_t bits, const std::string& type = "",
                                bool nested = true);
void put_adapter(MappedSource& source, const AdapterWords& words);

}  // namespace stepsim
