#include "tests/support/worker.hpp"

#include <cstring>
#include <string>

#include "analysis/studies/predict/worker.hpp"

namespace stepsim {

std::vector<double> numbers_from_worker(const std::function<std::vector<double>()>& task) {
  const std::string bytes = in_worker([&] {
    const std::vector<double> numbers = task();
    std::string text(numbers.size() * sizeof(double), '\0');
    if (!numbers.empty()) std::memcpy(text.data(), numbers.data(), text.size());
    return text;
  });
  std::vector<double> numbers(bytes.size() / sizeof(double));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
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
