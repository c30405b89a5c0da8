#include "tests/support/worker.hpp"

#include "sim/process/worker.hpp"

namespace stepsim {

std::vector<double> numbers_from_worker(const std::function<std::vector<double>()>& task) {
  return in_worker(task);
}

std::vector<double> everything_in(const Trace& trace) {
  std::vector<double> all;
  for (const auto* column : {&trace.ready, &trace.start, &trace.finish})
    all.insert(all.end(), column->begin(), column->end());
  for (const LinkUse& link : trace.links) {
    all.push_back(link.bytes);
    all.push_back(link.busy.value);
  }
  all.push_back(trace.makespan.value);
  all.push_back(static_cast<double>(trace.activities));
  return all;
}

}  // namespace stepsim
