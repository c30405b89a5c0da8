// These are the keys of failures, which jobs of all methods have.
#pragma once

#include <array>

#include "scenarios/keys/key.hpp"
#include "workloads/strategy/failures.hpp"

namespace stepsim {

// `Own` is the place of the failures in what the keys are of: &Job::failures.
template <auto Own>
constexpr std::array failure_keys{
    time<Own, &Failures::mtbf>("mtbf"),
    time<Own, &Failures::gpu_mtbf>("gpu_mtbf"),
    time<Own, &Failures::switch_mtbf>("switch_mtbf"),
    whole<Own, &Failures::switch_nodes>("switch_nodes", 1, 1 << 20),
    time<Own, &Failures::taken>("taken"),
    time<Own, &Failures::warning>("warning"),
    time<Own, &Failures::away>("away"),
    time<Own, &Failures::queue>("queue"),
    whole<Own, &Failures::spares>("spares", 0, 1 << 20),
    time<Own, &Failures::repair>("repair"),
    flag<Own, &Failures::shrinks>("shrinks"),
    whole<Own, &Failures::save_steps>("save_steps", 0, 1 << 30),
    time<Own, &Failures::save>("save"),
    time<Own, &Failures::notice>("notice"),
    whole<Own, &Failures::seed>("seed", 0, 1 << 24),
};

}  // namespace stepsim
