#include "workloads/grpo/engine_stack.hpp"

namespace stepsim {

EngineStack read_engine_stack(const Table& table) {
  EngineStack stack;
  stack.name = table.text("name");
  stack.title = table.text("title");
  const Table kernels = table.table("kernels");
  stack.kernels = {.weights = kernels.constant<Ratio>("weights"),
                   .flops = kernels.constant<Ratio>("flops"),
                   .blend = kernels.constant<Ratio>("blend"),
                   .cache = kernels.constant<Ratio>("cache"),
                   .small = kernels.constant<Seconds>("small"),
                   .eager_per_layer = kernels.constant<Ratio>("eager_per_layer")};
  const Table host = table.table("host");
  stack.host = {.iteration = host.constant<Seconds>("iteration"),
                .sequence = host.constant<Seconds>("sequence")};
  const Table memory = table.table("memory");
  stack.memory = {.overhead = memory.constant<Bytes>("overhead"),
                  .block = memory.constant<Ratio>("block"),
                  .watermark = memory.constant<Ratio>("watermark")};
  const Table sync = table.table("sync");
  stack.sync = {.call = sync.constant<Seconds>("call"),
                .engine = sync.constant<Seconds>("engine"),
                .busy = sync.constant<Seconds>("busy"),
                .send = sync.constant<Seconds>("send"),
                .gather = sync.constant<Seconds>("gather"),
                .pause = sync.constant<Seconds>("pause"),
                .stream = sync.constant<BytesPerSecond>("stream")};
  const Table start = table.table("start");
  stack.start = {.load = start.constant<BytesPerSecond>("load"),
                 .fixed = start.constant<Seconds>("fixed"),
                 .rank = start.constant<Seconds>("rank")};
  return stack;
}

}  // namespace stepsim
