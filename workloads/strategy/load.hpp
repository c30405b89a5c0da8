// A load says how much a micro-batch is for one rank: token slots, and which of them look at each
// other.
#pragma once

#include "workloads/model/model.hpp"
#include "workloads/strategy/job.hpp"
#include "workloads/strategy/strategy.hpp"

namespace stepsim {

struct Load {
  double tokens = 0;    // token slots that are computed
  double attended = 0;  // keys seen, summed over queries, by kernels that know where documents end
  double in_rows = 0;   // the same by kernels that take a row for one document
  double in_squares = 0;  // the same by those that look at all of a row and mask what comes later
  double wanted = 0;      // of `attended` what no padding has part in
  bool masked = false;    // rows end at different places
};
Load load_of(const Model& model, const Job& job, std::int64_t layer);

// Returns the keys that the queries of a document see in all: those before them, of an encoder
// those behind them too, and within the layer's window.
double keys_seen(const Model& model, std::int64_t layer, double tokens);

// Returns the same per token over documents of all lengths; one longer than a row is cut there. If
// rows are packed it goes on in the next, where it does not see its beginning.
double keys_per_token(const Model& model, std::int64_t layer, const DocumentLength& documents,
                      double row, bool packed);

}  // namespace stepsim
