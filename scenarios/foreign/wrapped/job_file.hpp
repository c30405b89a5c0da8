// This reads YAML files that ask a cluster to run commands: tasks of SkyPilot and dstack, jobs of
// Kubernetes (Job, PyTorchJob, TrainJob, RayCluster and RayJob), values of Helm, compose files.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "scenarios/foreign/wrapped/wrapped_source.hpp"

namespace stepsim {

class Catalogue;

// Returns whether the text is, by its first keys, a task of SkyPilot or an object of Kubernetes.
bool is_job_file(std::string_view text);

// Returns nothing where the text is no such file. Throws UserError about one that is no YAML.
std::optional<WrappedSource> read_job_file(const Catalogue& data, std::string_view text,
                                           const std::string& file);

}  // namespace stepsim
