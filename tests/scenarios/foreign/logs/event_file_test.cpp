// Event files of TensorBoard tell how long a step takes.
#include "scenarios/foreign/logs/event_file.hpp"

#include <cstring>
#include <string>

#include "scenarios/foreign/logs/trainer_log.hpp"
#include "tests/support/catch.hpp"

namespace stepsim {
namespace {

template <class Number>
std::string as_bytes(Number value) {
  std::string text(sizeof value, '\0');
  std::memcpy(text.data(), &value, sizeof value);
  return text;
}

std::string part(char tag, const std::string& bytes) {
  return std::string{tag, static_cast<char>(bytes.size())} + bytes;
}

std::string record(const std::string& event) {
  return as_bytes(std::uint64_t{event.size()}) + "crc1" + event + "crc2";
}

// Numbers of fields: time 1 and step 2 of an event, summary 5, value 1, tag 1, figure 2.
std::string scalar(double time, char step, const std::string& tag) {
  const std::string value = part('\x0a', tag) + '\x15' + as_bytes(0.5f);
  return record('\x09' + as_bytes(time) + '\x10' + std::string(1, step) +
                part('\x2a', part('\x0a', value)));
}

const std::string head = record('\x09' + as_bytes(1.7e9) + part('\x1a', "brain.Event:2"));

}  // namespace

TEST_CASE("events of training tell the time of a step", "[log]") {
  std::string bytes = head;
  for (char step = 10; step <= 100; step = static_cast<char>(step + 10))
    bytes += scalar(1.7e9 + 3 * step, step, "train/loss") +
             scalar(1.7e9 + 3 * step + 1, step, "eval/loss");
  CHECK(reported_steps(bytes).size() == 10);
  const TrainerLog log = read_trainer_log(bytes, "events.out.tfevents.1.host");
  CHECK(log.kind == "TensorBoard's events");
  CHECK(log.done == 100);
  CHECK(*log.seconds_per_step == Approx(3));
}

TEST_CASE("an event file that ends within a record is read up to there", "[log]") {
  const std::string bytes = head + scalar(1.7e9, 1, "loss") + scalar(1.7e9 + 2, 2, "loss");
  for (std::size_t size = 0; size <= bytes.size(); ++size)
    CHECK(reported_steps(bytes.substr(0, size)).size() <= 2);
  CHECK(reported_steps(bytes.substr(0, bytes.size() - 8)).size() == 1);
}

}  // namespace stepsim
