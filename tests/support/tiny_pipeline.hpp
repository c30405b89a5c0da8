// Steps over pipeline stages, small enough to reckon with symbols.
#pragma once

#include "tests/support/tiny_step.hpp"

namespace stepsim {

// Returns a pipeline with as many layers as it has pieces, all alike; nothing costs anything but
// products of matrices, whose rate is low, so that passes of all pieces take equally long. One rank
// is one stage.
TinyStep even_pipeline(const PipelineParallel& pipeline, std::int64_t micro_batches);

// One of every way to cut a model into stages, on 2 x 4 ranks.
std::vector<Variant> tiny_pipelines();

}  // namespace stepsim
