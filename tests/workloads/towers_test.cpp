// Towers for images: parameters, tokens of an image, and what a step runs of them.
#include <algorithm>

#include "analysis/memory_timeline.hpp"
#include "tests/support/exactly.hpp"
#include "tests/support/source_data.hpp"
#include "tests/support/tiny_step.hpp"
#include "tests/support/worker.hpp"
#include "workloads/model/model_catalog.hpp"
#include "workloads/model/parts.hpp"
#include "workloads/program/visits.hpp"
#include "workloads/sharding/resident.hpp"

using namespace stepsim;

namespace {

Model seeing_model(const char* name) {
  return load_model(source_data(), name);
}

std::int64_t tower_parameters(const char* name) {
  Model model = seeing_model(name);
  const std::int64_t whole = count_parameters(model).total();
  model.tower.reset();
  return whole - count_parameters(model).total();
}

double tokens_of_image(const char* name, double side) {
  return picture_of(*seeing_model(name).tower, side * side).tokens;
}

// Two layers see 16 patches of an image, of which four make a token.
TinyStep seeing() {
  TinyStep step = tiny_step(Sharding::zero0);
  step.job.packed = false;
  step.job.images = 2;
  step.job.pixels = 56 * 56;
  step.model.tower = Tower{.layers = 2,
                           .hidden = 64,
                           .heads = 4,
                           .head_dim = 16,
                           .width = 128,
                           .least_pixels = 28 * 28,
                           .most_pixels = 1e6,
                           .merged = 4,
                           .projector = {{"one", 256, 64}}};
  return step;
}

double peak_with_tower(const TinyStep& step) {
  return numbers_from_worker([&] {
           const Replayed replayed = play(step);
           return std::vector<double>{peak_memory(replayed.program.graph, replayed.trace, 0).bytes};
         })
      .front();
}

}  // namespace

TEST_CASE("towers and projectors have the published numbers of parameters", "[workloads][towers]") {
  CHECK(tower_parameters("qwen2-vl-2b") == 665'271'296);
  CHECK(tower_parameters("qwen2-vl-7b") == 675'759'104);
  CHECK(tower_parameters("qwen2.5-vl-7b") == 676'550'144);
  CHECK(tower_parameters("qwen3-vl-8b") == 576'388'336);
  CHECK(tower_parameters("llava-1.5-7b") == 303'507'456 + 20'979'712);
  CHECK(tower_parameters("gemma-3-4b") == 416'866'032 + 2'950'272);
  CHECK(tower_parameters("internvl3-8b") == 304'012'288 + 27'540'480);
  CHECK(tower_parameters("smolvlm-2.2b") == 412'987'248 + 21'233'664);
}

TEST_CASE("an image makes as many tokens as its processor says", "[workloads][towers]") {
  // Patches of 14 pixels, four to a token: 448 / 28 on a side, at least two and at most 128.
  CHECK(tokens_of_image("qwen2-vl-7b", 448) == 256);
  CHECK(tokens_of_image("qwen2.5-vl-7b", 448) == 256);
  CHECK(tokens_of_image("qwen2.5-vl-7b", 1288) == 46 * 46);
  CHECK(tokens_of_image("qwen2.5-vl-7b", 20) == 4);
  CHECK(tokens_of_image("qwen2.5-vl-7b", 10'000) == 16'384);
  CHECK(tokens_of_image("qwen3-vl-8b", 448) == 196);  // patches of 16
  CHECK(tokens_of_image("llava-1.5-7b", 1000) == 576);
  CHECK(tokens_of_image("gemma-3-4b", 1000) == 256);
  CHECK(tokens_of_image("internvl3-8b", 448) == 256);
  CHECK(tokens_of_image("internvl3-8b", 896) == 5 * 256);  // two by two, and the whole
  CHECK(tokens_of_image("internvl3-8b", 4000) == 10 * 256);
  CHECK(tokens_of_image("smolvlm-2.2b", 500) == 17 * 81);
  CHECK(picture_of(*seeing_model("llava-1.5-7b").tower, 1).patches == 577);
  CHECK(picture_of(*seeing_model("qwen2.5-vl-7b").tower, 448 * 448).patches == 1024);
}

TEST_CASE("a frozen tower runs forward and keeps nothing", "[workloads][towers]") {
  TinyStep frozen = seeing(), blind = seeing(), trained = seeing();
  blind.model.tower.reset();
  trained.strategy.vision = {.tower = true, .projector = true};
  const ModelUnits units = units_of(frozen.input());
  CHECK(units.of_tower == 2);
  for (const Visit& visit : visits_of(units)) {
    const bool sees = visit.layer >= 0 && visit.layer < 2;
    CHECK(visit.frozen == sees);
    if (sees) CHECK(visit.phase == Phase::forward);
  }
  const ModelUnits learning = units_of(trained.input());
  CHECK(std::ranges::none_of(visits_of(learning), &Visit::frozen));
  const double weights = static_cast<double>(count_parameters(frozen.model).total() -
                                             count_parameters(blind.model).total());
  const double without = states_of(blind.rank());
  CHECK_THAT(states_of(frozen.rank()) - without, exactly(2 * weights));
  CHECK(states_of(trained.rank()) - without >= 12 * weights);  // copies and moments as well
  CHECK(peak_with_tower(trained) > peak_with_tower(frozen));
  CHECK(seconds_of(blind) < seconds_of(frozen));
  CHECK(seconds_of(frozen) < seconds_of(trained));
}

TEST_CASE("every way to shard takes a tower along", "[workloads][towers]") {
  for (const Sharding sharding :
       {Sharding::zero1, Sharding::zero2, Sharding::zero3, Sharding::fsdp}) {
    CAPTURE(static_cast<int>(sharding));
    TinyStep step = tiny_step(sharding);
    step.job.packed = false;
    step.job.images = 1;
    step.model.tower = seeing().model.tower;
    const double frozen = seconds_of(step);
    step.strategy.vision = {.tower = false, .projector = true};
    const double projector = seconds_of(step);
    step.strategy.vision.tower = true;
    CHECK(frozen < projector);
    CHECK(projector < seconds_of(step));
  }
}
