// pickle_as_json FILE: what a pickle holds, as JSON, or why it is refused.
#include <cstdio>

#include "sim/base/error.hpp"
#include "sim/base/json.hpp"
#include "sim/base/pickle.hpp"
#include "sim/base/whole_file.hpp"

namespace {

using namespace stepsim;

void write(JsonWriter& json, const Pickle& pickle, Pickle::Id id) {
  switch (pickle.kind(id)) {
    case Pickle::Kind::none:
      json.null();
      break;
    case Pickle::Kind::flag:
      json.value(pickle.flag(id));
      break;
    case Pickle::Kind::whole:
      json.value(pickle.whole(id));
      break;
    case Pickle::Kind::number:
      json.value(pickle.number(id));
      break;
    case Pickle::Kind::text:
      json.value(pickle.text(id));
      break;
    default:  // a dictionary as a list of its keys and values
      json.begin_array();
      for (const Pickle::Id each : pickle.items(id)) write(json, pickle, each);
      json.end_array();
  }
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) return 3;
  try {
    const Pickle pickle = read_pickle(read_file(words[1]), words[1]);
    JsonWriter json;
    write(json, pickle, pickle.root());
    std::fputs(json.take().c_str(), stdout);
  } catch (const UserError& error) {
    std::puts(error.what());
    return 2;
  }
  return 0;
}
