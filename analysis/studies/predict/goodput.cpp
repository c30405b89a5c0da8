#include "analysis/studies/predict/goodput.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"

namespace stepsim {
namespace {

constexpr double no_end = std::numeric_limits<double>::infinity();
constexpr int failures_played = 2000;  // of a job without end, or of all jobs together
constexpr int least_jobs = 10, fewest_jobs = 100, most_jobs = 1000;
constexpr double failures_of_an_interval = 2e5;
// A job that fails more often goes on as it began: its shares are those of one without end.
constexpr double failures_of_a_job = 5000;

struct Times {
  double useful = 0, saving = 0, lost = 0, down = 0, waiting = 0, slower = 0, failures = 0;

  double all() const { return useful + saving + lost + down + waiting + slower; }
  Times& operator+=(const Times& more) {
    useful += more.useful;
    saving += more.saving;
    lost += more.lost;
    down += more.down;
    waiting += more.waiting;
    slower += more.slower;
    failures += more.failures;
    return *this;
  }
};

class Play {
 public:
  Play(const JobCourse& job, std::int64_t interval, std::uint64_t seed)
      : job_(job),
        work_(static_cast<double>(interval)),
        rest_(job.steps > 0 ? job.steps : no_end),
        luck_(seed) {}

  Times times() {
    spent_.waiting += job_.begin;
    now_ = job_.begin;
    draw();
    while (rest_ > 0) {
      const bool fails = next_ <= steps_until(next_);
      if (rest_ <= 0 || (rest_ == no_end && spent_.failures >= failures_played)) break;
      if (fails) fail();
      restart();
    }
    return spent_;
  }

 private:
  double uniform() { return (static_cast<double>(luck_() >> 11U) + 0.5) * 0x1p-53; }

  // Draws when the next break comes, and which.
  void draw() {
    double rate = 0;
    for (const Break& each : job_.breaks) rate += 1 / each.between;
    next_ = rate > 0 ? now_ - std::log(uniform()) / rate : no_end;
    double place = uniform() * rate;
    kind_ = job_.breaks.empty() ? nullptr : &job_.breaks.back();
    for (const Break& each : job_.breaks) {
      place -= 1 / each.between;
      if (place > 0) continue;
      kind_ = &each;
      break;
    }
  }

  std::int64_t there() const {
    if (job_.spares < 0) return job_.nodes;
    const auto away = static_cast<std::int64_t>(returns_.size());
    return std::min(job_.nodes, job_.nodes + job_.spares - away);
  }

  // Runs steps and checkpoints until the job ends, a break comes at `until`, or nodes that were
  // missed are back; returns when that was.
  double steps_until(double until) {
    const double speed = static_cast<double>(there()) / static_cast<double>(job_.nodes);
    if (speed < 1) until = std::min(until, returns_.back());
    const double pace = job_.step / speed, left = until - now_, cycle = work_ * pace + job_.save;
    const double saves = rest_ == no_end ? no_end : std::ceil(rest_ / work_);
    if (rest_ * pace + saves * job_.save <= left) {
      now_ += rest_ * pace + saves * job_.save;
      spend(rest_, speed, saves);
      rest_ = 0;
      return now_;
    }
    const bool warned = until == next_ && kind_->warning >= job_.save + job_.behind;
    double cycles = std::floor(left / cycle), beyond = std::max(0.0, left - cycles * cycle);
    if (until < next_ || warned) {  // a checkpoint is written now, if that takes no longer
      const double saves_now = beyond > job_.save ? 1 : 0;
      const double more = std::min(saves_now * (beyond - job_.save) / pace, rest_ - cycles * work_);
      spend(cycles * work_ + more, speed, cycles + saves_now);
      rest_ -= cycles * work_ + more;
      spent_.lost += std::max(0.0, beyond - more * pace - saves_now * job_.save);
    } else {
      if (beyond < job_.behind && cycles > 0) {  // the last one is not safe yet
        --cycles;
        beyond += work_ * pace;
        spent_.saving += job_.save;
      }
      spend(cycles * work_, speed, cycles);
      rest_ -= cycles * work_;
      spent_.lost += beyond;
    }
    now_ = until;
    return until;
  }

  void spend(double steps, double speed, double saves) {
    const double useful = steps * job_.step;
    spent_.useful += useful;
    spent_.slower += useful / speed - useful;
    spent_.saving += saves * job_.save;
  }

  // Takes the nodes of this break away, and draws the next one.
  void fail() {
    ++spent_.failures;
    if (kind_->nodes == 0) {
      wait_until(now_ + kind_->away);
    } else if (job_.spares >= 0) {
      const std::int64_t lost = std::min(kind_->nodes, there());
      returns_.insert(returns_.end(), static_cast<std::size_t>(lost), now_ + kind_->away);
      std::ranges::sort(returns_, std::greater{});
    }
    draw();
  }

  // A job that waits cannot fail: its next failure comes later by as long as it waits.
  void wait_until(double time) {
    spent_.waiting += time - now_;
    next_ += time - now_;
    now_ = time;
  }

  // Waits for nodes, and starts; what fails meanwhile is started once more.
  void restart() {
    for (;;) {
      while (!returns_.empty() && returns_.back() <= now_) returns_.pop_back();
      const std::int64_t least = job_.shrinks ? 1 : job_.nodes;
      while (there() < least) {
        wait_until(std::max(now_, returns_.back()));
        returns_.pop_back();
      }
      const double starting = std::min(job_.restart, next_ - now_);
      spent_.down += starting;
      now_ += starting;
      if (next_ > now_) return;
      fail();
    }
  }

  const JobCourse& job_;
  double work_ = 0;  // steps between checkpoints
  double rest_ = 0;  // steps that are still to be done
  std::mt19937_64 luck_;
  double now_ = 0, next_ = 0;  // s; the next break
  const Break* kind_ = nullptr;
  std::vector<double> returns_;  // when nodes that are away come back, the next one last
  Times spent_;
};

[[noreturn]] void throw_hopeless(const JobCourse& job, double between) {
  throw UserError(fmt::format(
      "job.failures: something fails once in {}, which leaves no time for a step of {}, a "
      "checkpoint of {} and a restart of {}",
      to_text(Seconds{between}), to_text(Seconds{job.step}), to_text(Seconds{job.save}),
      to_text(Seconds{job.restart})));
}

// Returns how often a job fails until it ends, about: each failure is played.
double failures_expected(const JobCourse& job, double interval, double between) {
  const double work = interval * job.step, cycle = work + job.save;
  const double pieces = job.steps > 0 ? job.steps * job.step / work : 1;
  return pieces * std::expm1(cycle / between) * std::exp(job.restart / between);
}

struct Played {
  Goodput mean;
  std::vector<double> walls;
};

Played played(const JobCourse& job, std::int64_t interval, double between) {
  const double expected = failures_expected(job, static_cast<double>(interval), between);
  // A job that fails often is much like any other.
  const double fewest =
      std::clamp(failures_of_an_interval / expected, double{least_jobs}, double{fewest_jobs});
  const int jobs =
      job.steps > 0
          ? static_cast<int>(std::clamp(failures_played / expected, fewest, double{most_jobs}))
          : 1;
  Times sum;
  Played found;
  found.walls.reserve(static_cast<std::size_t>(jobs));
  for (int each = 0; each < jobs; ++each) {
    const Times times =
        Play(job, interval, job.seed + 0x9e3779b97f4a7c15ULL * static_cast<std::uint64_t>(each))
            .times();
    sum += times;
    found.walls.push_back(times.all());
  }
  const double all = sum.all();
  found.mean = {.useful = sum.useful / all,
                .saving = sum.saving / all,
                .lost = sum.lost / all,
                .down = sum.down / all,
                .waiting = sum.waiting / all,
                .slower = sum.slower / all,
                .interval = interval,
                .failures = sum.failures / jobs,
                .between = between};
  if (job.steps > 0) found.mean.wall = {all / jobs};
  return found;
}

}  // namespace

JobCourse course_of(const Failures& failures, const Cluster& cluster) {
  JobCourse course{.begin = failures.queue.value,
                   .interval = failures.save_steps,
                   .breaks = {},
                   .nodes = cluster.nodes,
                   .spares = failures.spares,
                   .shrinks = failures.shrinks,
                   .seed = failures.seed};
  const double nodes = cluster.nodes, repair = failures.repair.value;
  const auto add = [&](Seconds each, double count, const Break& how) {
    if (each.value <= 0) return;
    course.breaks.push_back(how);
    course.breaks.back().between = each.value / count;
  };
  add(failures.mtbf, nodes, {.away = repair});
  add(failures.gpu_mtbf, cluster.ranks(), {.away = repair});
  add(failures.switch_mtbf, std::ceil(nodes / static_cast<double>(failures.switch_nodes)),
      {.nodes = failures.switch_nodes, .away = repair});
  add(failures.taken, 1,
      {.nodes = 0, .away = failures.away.value, .warning = failures.warning.value});
  return course;
}

Goodput goodput_of(const JobCourse& job) {
  double rate = 0;
  for (const Break& each : job.breaks) rate += 1 / each.between;
  if (rate <= 0 || job.step <= 0) return {};
  const double between = 1 / rate, length = job.steps * job.step;
  if (length > failures_of_a_job * between) {
    JobCourse endless = job;
    endless.steps = 0;
    Goodput found = goodput_of(endless);
    found.wall = found.low = found.high = {length / found.useful};
    found.failures = found.wall.value / between;
    return found;
  }
  Played best;
  // A job without end is played until it has failed so often; a few checkpoints have to be among
  // that.
  const double most_failures = job.steps > 0 ? 2e4 : failures_played / 20.0;
  const auto hopeless = [&](double interval) {
    return failures_expected(job, interval, between) > most_failures;
  };
  if (job.interval > 0) {
    if (hopeless(static_cast<double>(job.interval))) throw_hopeless(job, between);
    best = played(job, job.interval, between);
  } else {
    const double most =
        std::max(1.0, std::min(between / job.step, job.steps > 0 ? job.steps : no_end));
    // A checkpoint cannot begin before the one before it is safe.
    const double fewest = std::clamp(std::ceil(job.behind / job.step), 1.0, most);
    constexpr double tenth = 1.1;
    best.mean.useful = -1;
    for (double steps = fewest; steps <= most;
         steps = std::max(steps + 1, std::floor(steps * tenth))) {
      if (hopeless(steps)) continue;
      Played with = played(job, static_cast<std::int64_t>(steps), between);
      if (with.mean.useful > best.mean.useful) best = std::move(with);
    }
  }
  if (best.mean.useful < 0) throw_hopeless(job, between);
  if (job.steps > 0) {
    std::ranges::sort(best.walls);
    const std::size_t last = best.walls.size() - 1;
    best.mean.low = {best.walls[last / 10]};
    best.mean.high = {best.walls[last - last / 10]};
  }
  return best.mean;
}

}  // namespace stepsim
