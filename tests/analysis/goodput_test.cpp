#include "analysis/studies/predict/goodput.hpp"

#include <cmath>

#include "sim/base/error.hpp"
#include "tests/support/catch.hpp"

namespace stepsim {
namespace {

constexpr double hour = 3600, day = 24 * hour;

JobCourse failing(double between) {
  return {.step = 60, .save = 90, .restart = 1200, .breaks = {{.between = between}}};
}

double all_of(const Goodput& g) {
  return g.useful + g.saving + g.lost + g.down + g.waiting + g.slower;
}

// Of exponential failures a mean of 1 / (exp(cycle / mtbf) - 1) cycles is saved before each.
TEST_CASE("goodput is that of the closed form, and its parts add up", "[goodput]") {
  JobCourse job = failing(day);
  job.interval = 30;
  const Goodput good = goodput_of(job);
  const double work = 30 * 60.0, cycle = work + 90;
  const double closed = std::exp(-1200 / day) * work / (day * std::expm1(cycle / day));
  CHECK(good.useful == Approx(closed).epsilon(0.01));
  CHECK(all_of(good) == Approx(1).epsilon(1e-9));
  job.interval = 0;
  const Goodput best = goodput_of(job);
  CHECK(best.useful >= good.useful);
  // Young: as often as saving and losing cost the same.
  CHECK(static_cast<double>(best.interval) * 60 == Approx(std::sqrt(2 * 90 * day)).epsilon(0.35));
  CHECK(goodput_of(JobCourse{.step = 60}).useful == 1);
}

// Daly: a job of so much work takes M exp(R / M) (exp(cycle / M) - 1) for each cycle, in the mean.
TEST_CASE("a job with an end takes as long as Daly's closed form says", "[goodput]") {
  for (const double between : {4 * hour, day, 5 * day}) {
    JobCourse job = failing(between);
    job.steps = 30 * 24 * 60;  // thirty days of work
    job.interval = 20;
    const Goodput good = goodput_of(job);
    const double cycle = 20 * 60 + 90.0;
    const double closed =
        between * std::exp(1200 / between) * std::expm1(cycle / between) * job.steps / 20.0;
    CAPTURE(between);
    CHECK(good.wall.value == Approx(closed).epsilon(0.01));
    CHECK(good.low < good.wall);
    CHECK(good.wall < good.high);
    CHECK(all_of(good) == Approx(1).epsilon(1e-9));
    CHECK(good.failures == Approx(good.wall.value / between).epsilon(0.03));
  }
}

// Two engines find the same step but for its last digit, and a job of whole intervals saves as
// often.
TEST_CASE("checkpoints are counted in steps, whatever the last digit of a step is", "[goodput]") {
  JobCourse job = failing(6000 * hour);
  job.interval = 12;
  job.steps = 2916;
  const auto saving = [&](double step) {
    job.step = step;
    const Goodput good = goodput_of(job);
    return good.saving * good.wall.value;
  };
  double step = 0.183363931307098;
  for (int i = 0; i < 50; ++i) {
    const double next = std::nextafter(step, 1.0);
    CHECK(saving(next) == Approx(saving(step)).epsilon(1e-9));
    step = next;
  }
}

TEST_CASE("a checkpoint behind training's back costs less of it, and is safe later", "[goodput]") {
  JobCourse waits = failing(6 * hour), behind = waits;
  waits.interval = behind.interval = 10;
  behind.save = 5;
  behind.behind = 85;
  const Goodput one = goodput_of(waits), other = goodput_of(behind);
  CHECK(other.saving < one.saving / 10);
  CHECK(other.useful > one.useful);
  // In the mean half of an interval is lost, and all of one where the last is not safe yet.
  CHECK(other.lost > one.lost);
  behind.interval = 0;
  CHECK(goodput_of(behind).interval >= 2);  // one is not begun before the other is safe
}

TEST_CASE("a warning that is long enough saves the work since the last checkpoint", "[goodput]") {
  JobCourse job = failing(8 * hour);
  job.interval = 120;
  job.breaks.front().nodes = 0;
  job.breaks.front().away = hour;
  const Goodput without = goodput_of(job);
  job.breaks.front().warning = 120;
  const Goodput with = goodput_of(job);
  CHECK(with.lost < without.lost / 20);
  CHECK(with.useful > without.useful);
  // An hour goes by for each eight that something runs.
  CHECK(without.waiting / (1 - without.waiting) == Approx(1.0 / 8).epsilon(0.05));
}

TEST_CASE("spare nodes end the waiting for repair, and so do fewer nodes", "[goodput]") {
  JobCourse job = failing(12 * hour);
  job.interval = 30;
  job.nodes = 16;
  job.steps = 20 * 24 * 60;
  job.breaks.front().away = day;
  const Goodput enough = goodput_of(job);
  job.spares = 0;
  const Goodput none = goodput_of(job);
  job.spares = 4;
  const Goodput some = goodput_of(job);
  job.spares = 0;
  job.shrinks = true;
  const Goodput shrunk = goodput_of(job);
  CHECK(enough.waiting == 0);
  CHECK(none.waiting > 0.5);  // a day for each twelve hours
  CHECK(some.waiting < 0.15);
  CHECK(some.useful > none.useful);
  CHECK(shrunk.waiting == 0);
  CHECK(shrunk.slower > 0.03);
  CHECK(shrunk.wall < none.wall);
  CHECK(shrunk.wall > enough.wall);
  for (const Goodput& each : {enough, none, some, shrunk}) CHECK(all_of(each) == Approx(1));
}

TEST_CASE("parts that fail add up, and a switch takes its nodes along", "[goodput]") {
  const Cluster cluster = [] {
    Cluster made;
    made.nodes = 64;
    return made;
  }();
  const JobCourse course = course_of(
      {.mtbf = {6400 * hour}, .switch_mtbf = {1000 * hour}, .switch_nodes = 32, .start = {}},
      cluster);
  REQUIRE(course.breaks.size() == 2);
  CHECK(course.breaks[0].between == Approx(100 * hour));
  CHECK(course.breaks[1].between == Approx(500 * hour));
  CHECK(course.breaks[1].nodes == 32);
}

TEST_CASE("a job of very many failures takes what its shares say", "[goodput]") {
  JobCourse job = failing(day);
  job.interval = 30;
  job.steps = 4000 * 24 * 60.0;
  const Goodput played = goodput_of(job);
  job.steps *= 2;
  const Goodput told = goodput_of(job);
  CHECK(told.wall.value == Approx(2 * played.wall.value).epsilon(0.01));
  CHECK(told.failures == Approx(2 * played.failures).epsilon(0.02));
}

TEST_CASE("what fails all the time is refused, not played for ever", "[goodput]") {
  JobCourse job = failing(10);
  job.steps = 1000;
  CHECK_THROWS_WITH(goodput_of(job), Catch::Contains("something fails once in 10.0 s"));
  JobCourse seldom_saved = failing(12 * hour);  // once in 5,400 times three steps are done in time
  seldom_saved.step = 34.4 * hour;
  seldom_saved.steps = 3611;
  seldom_saved.interval = 3;
  CHECK_THROWS_WITH(goodput_of(seldom_saved), Catch::Contains("leaves no time for a step"));
}

// What published jobs say of their failures, and what is left of the time by it. Where checkpoints
// or restarts are not stated, they are as often as loses least, and as the catalogue has them.
TEST_CASE("published jobs had about the goodput that their failures leave", "[goodput]") {
  constexpr double minutes = 60;
  // arXiv 2407.21783 3.3.4: 466 interruptions in 54 days; more than 90 % of the time. A checkpoint
  // of 405B holds training up for 0.59 s (arXiv 2407.20143, table 8).
  const Goodput llama = goodput_of({.step = 20,
                                    .steps = 54 * day / 20,
                                    .save = 0.59,
                                    .behind = 51,
                                    .restart = 10 * minutes,
                                    .breaks = {{.between = 54 * day / 466}}});
  CHECK(llama.useful > 0.90);
  CHECK(llama.useful < 0.96);
  // arXiv 2509.16293: 175 incidents of 9,600 GPUs in three months, a checkpoint every step that
  // takes 0.04 s, detected within a minute or two, requeued in 635 s; up to 97 %.
  const Goodput robust = goodput_of({.step = 10,
                                     .save = 0.04,
                                     .restart = 635 + 2 * minutes,
                                     .interval = 1,
                                     .breaks = {{.between = 90 * day / 175}}});
  CHECK(std::abs(robust.useful - 0.97) < 0.03);
  // arXiv 2402.15627 6.3: over 100 restarts in several weeks, here four; found within 10 minutes,
  // caught up within 15; more than 90 %.
  const Goodput mega = goodput_of(
      {.step = 15, .save = 5, .restart = 25 * minutes, .breaks = {{.between = 28 * day / 100}}});
  CHECK(mega.useful > 0.90);
}

}  // namespace
}  // namespace stepsim
