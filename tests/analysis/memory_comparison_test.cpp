#include "analysis/studies/fidelity/memory_comparison.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"

using namespace stepsim;

namespace {

using What = SnapshotEvent::What;

// Frames of a forward pass and of an optimizer.
MemorySnapshot snapshot() {
  MemorySnapshot made;
  made.stacks = {{},
                 {{"forward", "/a/modeling_llama.py", 7}},
                 {{"_init_group", "/v/torch/optim/adamw.py", 9}, {"main", "/a/train.py", 3}}};
  return made;
}

RealMemory real_of(const MemorySnapshot& made) {
  return real_memory(made, frame_rules(source_data()));
}

}  // namespace

TEST_CASE("the peak of a recording is replayed from what is left at its end", "[snapshot]") {
  MemorySnapshot made = snapshot();
  DeviceSnapshot& device = made.devices.emplace_back();
  device.events = {{What::segment_taken, 0, 200, 1}, {What::taken, 0, 100, 1},
                   {What::given, 500, 30, 0},        {What::taken, 100, 50, 2},
                   {What::given, 0, 100, 1},         {What::segment_given, 900, 80, 0}};
  device.live = {{100, 50, 2}, {600, 7, 0}};
  device.reserved = 300;
  const RealMemory real = real_of(made);
  CHECK(real.peak == 157);  // 37 from before, 100, less 30, and 50
  CHECK(real.reserved == 380);
  CHECK(real.reserved_at_peak == 380);
  CHECK(real.before == 7);
  CHECK_FALSE(real.from_start);
  CHECK(real.moment == "optimizer");
  REQUIRE(real.frames.size() == 3);
  CHECK(real.frames[0].frame == "modeling_llama.py:7 forward");
  CHECK(real.frames[0].kind == "activations");
  CHECK(real.frames[1].frame == "train.py:3 main");
  CHECK(real.frames[1].kind == "optimizer");
  CHECK(real.frames[2].frame == "there before the recording");
}

TEST_CASE("of several devices the fullest counts", "[snapshot]") {
  MemorySnapshot made = snapshot();
  made.devices.resize(3);
  made.devices[1].events = {{What::taken, 0, 10, 1}, {What::given, 0, 10, 1}};
  made.devices[2].live = {{0, 5, 1}};
  const RealMemory real = real_of(made);
  CHECK(real.device == 1);
  CHECK(real.peak == 10);
  CHECK(real.from_start);
}

TEST_CASE("without a recording what is in use at the end is all that is known", "[snapshot]") {
  MemorySnapshot made = snapshot();
  made.devices.emplace_back().live = {{0, 5, 1}, {8, 3, 0}};
  const RealMemory real = real_of(made);
  CHECK(real.events == 0);
  CHECK(real.peak == 8);
  CHECK(real.before == 3);
  CHECK(real.moment.empty());
}

TEST_CASE("an address is used again and again, and letters of a frame may be any", "[snapshot]") {
  MemorySnapshot made = snapshot();
  made.stacks[1][0].name = "for\x1b[2Jward\xff";
  made.devices.emplace_back().events = {{What::taken, 0, 10, 2},
                                        {What::given, 0, 10, 2},
                                        {What::taken, 0, 20, 1},
                                        {What::given, 0, 20, 1},
                                        {What::out_of_memory, 0, 70, 1}};
  const RealMemory real = real_of(made);
  CHECK(real.peak == 20);
  REQUIRE(real.frames.size() == 1);
  CHECK(real.frames[0].frame == "modeling_llama.py:7 for\\u001b[2Jward\\xff");
  CHECK(real.failed == 70);
}
