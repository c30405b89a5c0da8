// These are the keys of failures, which jobs of all methods have.
#pragma once

#include <array>

#include "scenarios/keys/key.hpp"
#include "workloads/strategy/failures.hpp"

namespace stepsim {

// `Own` is the place of the failures in what the keys are of: &Job::failures.
template <auto Own>
constexpr std::array failure_keys{
    time<Own, &Failures::mtbf>("mtbf", "of a node, mean: a run goes on from its last checkpoint")
        .otherwise("none fails")
        .example("6000 h"),
    time<Own, &Failures::gpu_mtbf>("gpu_mtbf", "of a GPU, mean, beside what its node has")
        .otherwise("none fails")
        .example("50000 h"),
    time<Own, &Failures::switch_mtbf>("switch_mtbf",
                                      "of a switch, mean, which takes the nodes below it along")
        .otherwise("none fails")
        .example("200000 h"),
    whole<Own, &Failures::switch_nodes>("switch_nodes", 1, 1 << 20, "below such a switch"),
    time<Own, &Failures::taken>("taken", "mean, until the provider takes the whole machine back")
        .otherwise("never")
        .example("12 h"),
    time<Own, &Failures::warning>(
        "warning", "that the provider gives: time enough, and a checkpoint is written")
        .otherwise("0 s")
        .example("120 s"),
    time<Own, &Failures::away>("away", "until there is a machine again")
        .otherwise("0 s")
        .example("30 min"),
    time<Own, &Failures::queue>("queue", "before the job begins").otherwise("0 s").example("2 h"),
    whole<Own, &Failures::spares>("spares", 0, 1 << 20, "nodes in reserve")
        .otherwise("as many as it takes")
        .example("2"),
    time<Own, &Failures::repair>("repair", "until a node that failed is back")
        .otherwise("0 s")
        .example("24 h"),
    flag<Own, &Failures::shrinks>(
        "shrinks", "with no spare left a job goes on with fewer nodes; else it waits for one"),
    whole<Own, &Failures::save_steps>("save_steps", 0, 1 << 30,
                                      "between checkpoints; 0: as often as loses least"),
    time<Own, &Failures::save>("save", "in which everything waits for a checkpoint")
        .otherwise("as long as it takes")
        .example("60 s"),
    time<Own, &Failures::notice>("notice", "until a failure is seen")
        .otherwise("0 s")
        .example("60 s"),
    whole<Own, &Failures::seed>("seed", 0, 1 << 24, "of the draws"),
};

}  // namespace stepsim
