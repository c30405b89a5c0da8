// These write scenarios as files and scripts of other programs; exports.hpp names them.
#pragma once

#include <string>

#include "scenarios/scenario.hpp"

namespace stepsim {

// Writes how ranks share the training, as Accelerate's launcher reads it. `deepspeed` is the file
// that it names.
std::string accelerate_text(const Scenario& scenario, const std::string& deepspeed);

std::string trl_text(const Catalogue& data, const Scenario& scenario,
                     const std::string& accelerate);

// This writes a scenario as a configuration file of Axolotl.
std::string axolotl_text(const Catalogue& data, const Scenario& scenario,
                         const std::string& deepspeed);

// Stages of ZeRO are said in such a file, beside what says the rest.
bool needs_deepspeed_file(const Scenario& scenario);

std::string deepspeed_text(const Scenario& scenario);

// A scenario as a script that starts Megatron-LM.
std::string megatron_text(const Catalogue& data, const Scenario& scenario);

// A scenario as a script that starts OpenRLHF.
std::string openrlhf_text(const Catalogue& data, const Scenario& scenario);

// This writes a scenario as a configuration file of TorchTitan.
std::string torchtitan_text(const Catalogue& data, const Scenario& scenario);

// A GRPO scenario as a script that starts verl.
std::string verl_text(const Catalogue& data, const Scenario& scenario);

}  // namespace stepsim
