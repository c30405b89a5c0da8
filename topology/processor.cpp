#include "topology/processor.hpp"

namespace stepsim {

Processor read_processor(const Table& table) {
  Processor processor;
  processor.name = table.text("name");
  processor.title = table.text("title");
  processor.core_speed = table.table("host").constant<Ratio>("core_speed");
  return processor;
}

}  // namespace stepsim
