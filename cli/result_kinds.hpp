// This lists every kind of result that --json prints, and what its schema is made of: a result with
// everything in it that there may be.
#pragma once

#include "cli/result.hpp"

namespace stepsim {

// Each returns a result with everything in it that there may be.
using Sample = Records();
Sample run_sample, grpo_sample, memory_sample, grpo_memory_sample, explain_sample, check_sample,
    sweep_sample, search_sample, plan_sample, validate_sample, anchor_sample, diagnosis_sample,
    collective_sample, compare_sample, kernels_sample, list_sample, entry_sample, model_sample,
    scenario_sample, keys_sample, diff_sample, together_sample;

inline constexpr ResultKind run_kind{"run", 1, "`stepsim run`: one training step", run_sample,
                                     true};
inline constexpr ResultKind grpo_kind{"grpo", 1, "`stepsim run` of a GRPO job: its mean step",
                                      grpo_sample, 1};
inline constexpr ResultKind memory_kind{"memory", 1, "`stepsim memory`: what a step needs",
                                        memory_sample, 1};
inline constexpr ResultKind grpo_memory_kind{"grpo_memory", 1, "`stepsim memory` of a GRPO job",
                                             grpo_memory_sample, 1};
inline constexpr ResultKind explain_kind{"explain", 2, "`stepsim explain`: a gap, cause by cause",
                                         explain_sample, 2};
inline constexpr ResultKind check_kind{"check", 1, "`stepsim check`: claims and their verdicts",
                                       check_sample};
inline constexpr ResultKind sweep_kind{"sweep", 1, "`stepsim sweep` and `merge`: many settings",
                                       sweep_sample};
inline constexpr ResultKind search_kind{"search", 1, "`stepsim sweep --find`: one value",
                                        search_sample, 1};
inline constexpr ResultKind plan_kind{"plan", 1, "`stepsim plan`: the best ways to split a job",
                                      plan_sample, 1};
inline constexpr ResultKind validate_kind{"validate", 1, "`stepsim validate`: measured runs",
                                          validate_sample};
inline constexpr ResultKind anchor_kind{"anchor", 1, "`stepsim anchor`: what a measured run says",
                                        anchor_sample, 1};
inline constexpr ResultKind diagnosis_kind{
    "diagnosis", 1, "`stepsim diagnose`: what is likely wrong with a run", diagnosis_sample, 1};
inline constexpr ResultKind collective_kind{"collective", 1, "`stepsim collective`: bandwidth",
                                            collective_sample};
inline constexpr ResultKind compare_kind{
    "compare", 1, "`stepsim collective --compare`: measured rows", compare_sample};
inline constexpr ResultKind kernels_kind{"kernels", 1, "`stepsim kernels`: measured kernels",
                                         kernels_sample};
inline constexpr ResultKind list_kind{"list", 1, "`stepsim list`: what the catalogue holds",
                                      list_sample};
inline constexpr ResultKind entry_kind{"entry", 1, "`stepsim show` of an entry of the catalogue",
                                       entry_sample};
inline constexpr ResultKind model_kind{"model", 1, "`stepsim show` of a model", model_sample};
inline constexpr ResultKind scenario_kind{"scenario", 1, "`stepsim show` of a scenario",
                                          scenario_sample};
inline constexpr ResultKind keys_kind{"keys", 1, "`stepsim list keys`", keys_sample};
inline constexpr ResultKind diff_kind{
    "diff", 1, "`stepsim diff`: what two scenarios say differently", diff_sample, 2};
inline constexpr ResultKind together_kind{
    "together", 1, "`stepsim together`: what two jobs lose to each other", together_sample};

std::span<const ResultKind* const> result_kinds();
// Returns the JSON Schema of what --json prints.
Records json_schema(const ResultKind& kind);

// Returns the whole of docs/json.md.
std::string json_document();

}  // namespace stepsim
