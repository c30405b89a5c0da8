#include "topology/processor.hpp"

namespace stepsim {

Processor read_processor(const Table& table) {
  Processor processor;
  processor.name = table.text("name");
  processor.title = table.text("title");
  processor.core_speed = table.table("host").constant<Ratio>("core_speed");
  table.texts_or("measured_as");  // words of measurement tables, which their readers ask for
  return processor;
}

}  // namespace stepsim
