// The classes of memory that a job holds.
#pragma once

#include <cstdint>
#include <string_view>

#include "sim/base/member_words.hpp"
#include "sim/labels.hpp"

namespace stepsim {

enum class Held : std::uint8_t {
  // These are held from step to step.
  parameters,
  cast_weights,  // copies in the type of their products
  reference,     // parameters of a reference model
  persistent,    // parameters that stage 3 never gives up
  secondary,     // parameters of the secondary partition
  master_weights,
  optimizer,
  gradients,       // within a step, or from step to step
  own_gradients,   // of the rank's part, summed over all ranks
  fp32_gradients,  // of an optimizer on the host
  bucket,          // in which gradients are put together
  update_copy,     // 16-bit copy of what the host has updated
  offload_buffer,
  swap_buffers,
  parameter_buffers,
  // These are held within a step.
  activations,
  checkpoints,  // inputs of what is computed again
  activation_gradients,
  temporary,  // what one kernel needs while it runs
  gathered,   // parameters
  arrived,    // as they were gathered, before they are cut apart
  reduce_input,
  gradient_copy,
  flat_gradient,
  fp32_gradient,
  update_temporary,
  stage_buffers,  // messages between pipeline stages
  // Before the first step, and while a job is saved.
  checkpoint,
  whole_module,
  optimizer_temporary,
  saved_part,
  saved_model,
};
inline constexpr auto held_names = words_through<Held::saved_model>();
static_assert(held_names.size() == static_cast<std::size_t>(Held::saved_model) + 1);
constexpr std::string_view to_text(Held held) {
  return name_of(held_names, held);
}

}  // namespace stepsim
