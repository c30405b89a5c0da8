#include "workloads/strategy/load.hpp"

#include <algorithm>
#include <cmath>

namespace stepsim {

double keys_seen(const Model& model, std::int64_t layer, double tokens) {
  const auto all_before = [](double length) { return length * (length + 1) / 2; };
  const double window = static_cast<double>(window_of(model, layer));
  // To both sides of a token, and the token itself; at the ends of a text a side is cut.
  if (const double side = window / 2; model.encoder)
    return window == 0 || tokens <= side ? tokens * tokens
                                         : tokens * (window + 1) - side * (side + 1);
  if (window == 0 || tokens <= window) return all_before(tokens);
  // A sliding window is full from its width on; a chunk knows nothing of the one before.
  if (!model.attention.chunked) return all_before(window) + (tokens - window) * window;
  const double chunks = std::floor(tokens / window);
  return chunks * all_before(window) + all_before(tokens - chunks * window);
}

double keys_per_token(const Model& model, std::int64_t layer, const DocumentLength& documents,
                      double row, bool packed) {
  double tokens = 0, seen = 0;
  const double most = documents.most > 0 ? documents.most : row;
  const auto count = [&](double document, double weight) {
    const double length = packed ? document : std::min(document, most);
    const double rows = packed ? std::floor(length / row) : 0;
    tokens += weight * length;
    seen += weight *
            (rows * keys_seen(model, layer, row) + keys_seen(model, layer, length - rows * row));
  };
  if (documents.spread <= 0) {
    count(documents.mean, 1);
    return seen / tokens;
  }
  // The logarithm of a length is normal. A sum over equal steps converges fast, since the density
  // is smooth and gone at both ends: nine standard deviations, for the square leans to the right.
  const double variance = std::log1p(documents.spread * documents.spread);
  const double middle = std::log(documents.mean) - variance / 2;
  constexpr int steps = 360;
  for (int i = 0; i <= steps; ++i) {
    const double deviations = 18.0 * i / steps - 9;
    count(std::exp(middle + std::sqrt(variance) * deviations),
          std::exp(-deviations * deviations / 2));
  }
  return seen / tokens;
}

Load load_of(const Model& model, const Job& job, std::int64_t layer) {
  const double row = static_cast<double>(job.sequence);
  DocumentLength documents = job.documents;
  // Rows that are full of one document, or that hold one and are padded behind it.
  if (documents.mean <= 0) documents.mean = job.packed ? row : job.fill * row;
  const double within = keys_per_token(model, layer, documents, row, job.packed);
  const double slots = job.slots();
  return {.tokens = slots,
          .attended = within * slots * (job.packed ? 1 : job.fill),
          .in_rows = slots / row * keys_seen(model, layer, row),
          .in_squares = slots * row,
          .wanted = within * slots * job.fill,
          .masked = job.masks_ends()};
}

}  // namespace stepsim
