#include "workloads/step/pace.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "workloads/pipeline/turns.hpp"

namespace stepsim {
namespace {

// The time of what has not happened yet.
constexpr double not_yet = -std::numeric_limits<double>::infinity();

// These are known of a message: when both ends are ready for it, and when it can be there.
struct Ends {
  double source = not_yet, made = not_yet, target = not_yet, there = not_yet;
};

// The stages of a pipeline in turns, each as far as what it waits for is known.
class Stages {
 public:
  Stages(const PipelineParallel& pipeline, const std::vector<std::vector<PacedPiece>>& stages,
         std::int64_t micro_batches, const StageHabits& habits, const StageCosts& costs,
         std::vector<StageTraffic> traffic)
      : pipeline_(pipeline),
        pieces_(stages),
        costs_(costs),
        micro_batches_(micro_batches),
        traffic_(std::move(traffic)) {
    traffic_.resize(stages.size());
    sent_.fill(std::vector<double>(stages.size(), 0));
    messages_.resize(static_cast<std::size_t>(2 * pipeline.pieces() * micro_batches));
    for (std::int64_t stage = 0; stage < pipeline.size; ++stage)
      acts_.push_back(acts_of(pipeline, stage, micro_batches, habits));
    stages_.resize(acts_.size());
  }

  double end() {
    take_turns(acts_, [this](std::int64_t stage, const StageAct& act) { return done(stage, act); });
    double end = 0;
    for (std::size_t number = 0; number < stages_.size(); ++number) {
      const Stage& stage = stages_[number];
      const double last = std::max(stage.device.clock.last(), stage.device.exchange);
      const StageTraffic& traffic = traffic_[number];
      const double whole = traffic.in_backward ? stage.whole.value_or(last) : last;
      end = std::max({end, last, whole + traffic.behind});
    }
    return end;
  }

 private:
  struct Stage {
    PairClock device{};
    std::vector<Message> open{};    // asked for or sent since the host last waited
    std::optional<double> whole{};  // when the first gradients may be
  };

  Ends& ends_of(const Message& message) {
    const std::int64_t way = message.backward ? pipeline_.pieces() : 0;
    return messages_[static_cast<std::size_t>((way + message.from) * micro_batches_ +
                                              message.micro_batch)];
  }

  // Returns false where another stage has to go on first.
  bool done(std::int64_t own, const StageAct& act) {
    const auto number = static_cast<std::size_t>(own);
    Stage& stage = stages_[number];
    switch (act.kind) {
      case StageAct::Kind::expect:
        post(stage, *input_of(pipeline_, own, act.turn), &Ends::target);
        return true;
      case StageAct::Kind::send: {
        const Message message = *output_of(pipeline_, own, act.turn);
        ends_of(message).made = std::max(stage.device.clock.kernel, stage.device.clock.ready);
        post(stage, message, &Ends::source);
        return true;
      }
      case StageAct::Kind::settle:
        return settle(stage);
      case StageAct::Kind::run:
        return run(number, stage, act);
    }
    return true;
  }

  void post(Stage& stage, const Message& message, double Ends::*end) {
    stage.device.clock.host += costs_.post;
    stage.open.push_back(message);
    Ends& ends = ends_of(message);
    ends.*end = stage.device.clock.host;
    if (ends.source == not_yet || ends.target == not_yet) return;
    const std::int64_t from = source_of(pipeline_, message);
    double& before = sent_[message.backward ? 1 : 0][static_cast<std::size_t>(from)];
    const std::int64_t way = message.backward ? (from + pipeline_.size - 1) % pipeline_.size : from;
    ends.there = before =
        std::max({ends.source, ends.made, ends.target, before}) +
        (costs_.messages.empty() ? 0 : costs_.messages[static_cast<std::size_t>(way)]);
  }

  bool settle(Stage& stage) {
    RankClock after = stage.device.clock;
    for (const Message& message : stage.open) {
      const double there = ends_of(message).there;
      if (there == not_yet) return false;
      after.ready = std::max(after.ready, there);
      after.host = std::max(after.host, there);
    }
    after.host = std::max(after.host, after.kernel) + costs_.sync;
    stage.device.clock = after;
    stage.open.clear();
    return true;
  }

  bool run(std::size_t number, Stage& stage, const StageAct& act) {
    double there = not_yet;
    for (const Turn* turn : {&act.turn, act.beside ? &*act.beside : nullptr}) {
      if (turn == nullptr) continue;
      const auto message = input_of(pipeline_, static_cast<std::int64_t>(number), *turn);
      if (!message) continue;
      const double arrived = ends_of(*message).there;
      if (arrived == not_yet) return false;
      there = std::max(there, arrived);
    }
    PairClock& device = stage.device;
    device.clock.ready = std::max(device.clock.ready, there);
    const double ready = device.clock.ready;
    take_turn(number, device, act);
    mind_traffic(number, stage, act.turn, ready);
    if (act.beside) mind_traffic(number, stage, *act.beside, ready);
    return true;
  }

  void take_turn(std::size_t number, PairClock& device, const StageAct& act) const {
    if (act.beside) {
      Work both = work_of(number, act.turn);
      both += work_of(number, *act.beside);
      device.run_both(both);
      return;
    }
    const PacedPiece& piece = pieces_[number][static_cast<std::size_t>(act.turn.piece)];
    device.exchange =
        std::max(device.exchange, device.clock.host) + work_of(number, act.turn).exchange;
    device.clock = (goes_back(act.turn.pass) ? piece.backward : piece.forward)(device.clock);
  }

  const Work& work_of(std::size_t number, const Turn& turn) const {
    const PacedPiece& piece = pieces_[number][static_cast<std::size_t>(turn.piece)];
    return goes_back(turn.pass) ? piece.back : piece.ahead;
  }

  // The last piece's first turn is not over before its parameters are there, and no gradient is
  // whole before a turn of the last micro-batch begins.
  void mind_traffic(std::size_t number, Stage& stage, const Turn& turn, double begun) const {
    RankClock& clock = stage.device.clock;
    if (goes_back(turn.pass)) {
      if (turn.micro_batch + 1 == micro_batches_ && !stage.whole) stage.whole = begun;
    } else if (turn.micro_batch == 0 && turn.piece + 1 == pipeline_.virtual_stages) {
      clock.ready = std::max(clock.ready, traffic_[number].before);
    }
  }

  const PipelineParallel& pipeline_;
  const std::vector<std::vector<PacedPiece>>& pieces_;
  const StageCosts& costs_;
  std::int64_t micro_batches_;
  std::vector<std::vector<StageAct>> acts_;  // [stage]
  std::vector<Stage> stages_;
  std::vector<StageTraffic> traffic_;
  std::array<std::vector<double>, 2> sent_;  // [backward][stage]: when its last message was there
  std::vector<Ends> messages_;               // [backward][place that sends][micro-batch]
};

}  // namespace

Work& Work::operator+=(const Work& more) {
  host += more.host;
  kernels += more.kernels;
  exchange += more.exchange;
  operations += more.operations;
  return *this;
}

void PairClock::run_both(const Work& work) {
  const double begin = std::max(clock.host, clock.ready);
  exchange = std::max(exchange, clock.host) + work.exchange;
  clock.host += work.host;
  clock.kernel = std::max(begin + work.kernels, clock.host);
  clock.ready = std::max(clock.kernel, exchange);
}

double RankClock::last() const {
  return std::max({host, kernel, ready});
}

Pace::Pace()
    : host_{0, not_yet, not_yet}, kernel_{not_yet, 0, not_yet}, ready_{not_yet, not_yet, 0} {}

Pace::Row Pace::later(const Row& row, double seconds) {
  return {row[0] + seconds, row[1] + seconds, row[2] + seconds};
}

Pace::Row Pace::last_of(const Row& a, const Row& b) {
  return {std::max(a[0], b[0]), std::max(a[1], b[1]), std::max(a[2], b[2])};
}

void Pace::host(double seconds) {
  host_ = later(host_, seconds + spent_);
  spent_ = 0;
}

void Pace::run(double dispatch, double device) {
  host(dispatch);
  ready_ = kernel_ = later(last_of(ready_, host_), device);
}

void Pace::run_apart(double dispatch, double device) {
  const Row first = later(last_of(ready_, host_), device);
  host(dispatch);
  ready_ = kernel_ = last_of(first, host_);
}

void Pace::collective(double launch, double alone) {
  host(launch);
  ready_ = later(last_of(ready_, host_), alone);
}

void Pace::drain(double seconds) {
  host_ = last_of(host_, kernel_);
  host(seconds);
}

void Pace::ask(double launch, double alone, double sync) {
  host(launch);
  host_ = later(last_of(host_, kernel_), alone);
  host(sync);
}

Pace::Row Pace::after(const Row& row, const Pace& before) const {
  return last_of(last_of(later(before.host_, row[0]), later(before.kernel_, row[1])),
                 later(before.ready_, row[2]));
}

void Pace::go_on(const Pace& next) {
  if (spent_ > 0) host(0);
  const Pace before = *this;
  host_ = after(next.host_, before);
  kernel_ = after(next.kernel_, before);
  ready_ = after(next.ready_, before);
  spent_ = next.spent_;
}

Pace Pace::repeated(std::int64_t times) const {
  Pace all, power = *this;
  for (; times > 0; times /= 2) {
    if (times % 2 == 1) all.go_on(power);
    power.go_on(Pace(power));
  }
  return all;
}

RankClock Pace::operator()(const RankClock& begin) const {
  const auto end = [&](const Row& row) {
    return std::max({row[0] + begin.host, row[1] + begin.kernel, row[2] + begin.ready});
  };
  return {end(host_), end(kernel_), end(ready_)};
}

double end_of_pairs(const PacedPiece& piece, std::int64_t micro_batches) {
  PairClock device{.clock = piece.forward({}), .exchange = piece.ahead.exchange};
  Work both = piece.ahead;
  both += piece.back;
  for (std::int64_t pair = 0; pair + 1 < micro_batches; ++pair) device.run_both(both);
  return std::max(device.exchange, piece.backward(device.clock).last());
}

double end_of_turns(const PipelineParallel& pipeline,
                    const std::vector<std::vector<PacedPiece>>& stages, std::int64_t micro_batches,
                    const StageHabits& habits, const StageCosts& costs,
                    std::vector<StageTraffic> traffic) {
  return Stages(pipeline, stages, micro_batches, habits, costs, std::move(traffic)).end();
}

}  // namespace stepsim
