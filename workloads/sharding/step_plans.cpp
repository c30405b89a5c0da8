#include "workloads/sharding/step_plans.hpp"

#include <numeric>

#include "workloads/program/run_shared.hpp"
#include "workloads/sharding/scheme_facts.hpp"
#include "workloads/sharding/updates.hpp"

namespace stepsim {
namespace {

// Plans of groups whose members are `stride` apart; none where a group would be one rank.
struct Planner {
  const Cluster& cluster;
  const TrafficNeeds& needs;

  CollectivePlan of(Collective kind, Rank size, Rank stride) const {
    return plan_collective(cluster, kind, strided_groups(needs.mesh.ranks, size, stride));
  }
  CollectivePlan of_handover(Handover kind) const {
    const auto [collective, size, stride] = shape_of(kind, needs.mesh);
    return if_shared(collective, size, stride);
  }
  CollectivePlan of_copies(Rank size) const {
    CollectivePlan plan = plan_ring_pass(cluster, strided_groups(needs.mesh.ranks, size, 1));
    for (Candidate& candidate : plan.candidates)
      for (Pattern& pattern : candidate.patterns) pattern.occupancy = 0;
    return plan;
  }
  CollectivePlan if_shared(Collective kind, Rank size, Rank stride) const {
    return size > 1 ? of(kind, size, stride) : CollectivePlan{};
  }
  CollectivePlan of_exchange(Rank size, Rank stride) const {
    return size > 1 ? plan_exchange(cluster, strided_groups(needs.mesh.ranks, size, stride))
                    : CollectivePlan{};
  }
};

// Plans the traffic of parameters and gradients among the ranks that share one copy of the states.
void plan_shards(Plans& plans, const Planner& plan) {
  const SchemeFacts facts = facts_of(plan.needs.strategy);
  const Mesh& mesh = plan.needs.mesh;
  const Rank apart = mesh.apart();
  const bool whole = plan.needs.strategy.optimizer.orthogonal.has_value();
  if (facts.shares_states || (whole && facts.matrices.returned > 0))
    plans[Plan::all_gather] = plan.of(Collective::all_gather, mesh.shard, apart);
  if (facts.scatters_gradients)
    plans[Plan::reduce_scatter] = plan.of(Collective::reduce_scatter, mesh.shard, apart);
  if (!facts.scatters_gradients || (whole && facts.matrices.dealt && facts.matrices.gathered > 0))
    plans[Plan::all_reduce] = plan.of(Collective::all_reduce, mesh.shard, apart);
  if (whole && facts.matrices.exchanged > 0)
    plans[Plan::deal_matrices] = plan.of(Collective::all_to_all, mesh.shard, apart);
  plans[Plan::signal] =
      plan_signal(plan.cluster, Collective::all_reduce, strided_groups(mesh.ranks, mesh.ranks, 1));
  plans[Plan::replica_reduce] =
      plan.if_shared(Collective::all_reduce, mesh.replicas, apart * mesh.shard);
  plans[Plan::secondary_gather] = plan.if_shared(Collective::all_gather, facts.secondary, apart);
  if (!quantizes_gradients(plan.needs.strategy, plan.cluster)) return;
  const Rank in_node = plan.cluster.gpus_per_node() / apart;
  plans[Plan::inside_exchange] = plan.of(Collective::all_to_all, in_node, apart);
  plans[Plan::across_exchange] =
      plan.of(Collective::all_to_all, mesh.shard / in_node, apart * in_node);
}

// Expert-parallel groups are neighbours; ranks of equal place in them hold equal experts.
void plan_experts(Plans& plans, const Planner& plan) {
  const Mesh& mesh = plan.needs.mesh;
  if (!plan.needs.experts || mesh.experts <= 1) return;
  const Rank beside = mesh.beside();
  const Rank same = beside * mesh.experts;  // holders of the same experts are so far apart
  plans[Plan::exchange] = plan.of(Collective::all_to_all, mesh.experts, beside);
  const bool scattered = facts_of(plan.needs.strategy).scatters_gradients;
  const Plan reduce = scattered ? Plan::expert_scatter : Plan::expert_reduce;
  plans[reduce] = plan.if_shared(scattered ? Collective::reduce_scatter : Collective::all_reduce,
                                 mesh.expert_shard, same);
  plans[Plan::expert_gather] = plan.if_shared(Collective::all_gather, mesh.expert_shard, same);
  if (plan.needs.strategy.optimizer.orthogonal &&
      facts_of(plan.needs.strategy).matrices.exchanged > 0)
    plans[Plan::deal_experts] = plan.if_shared(Collective::all_to_all, mesh.expert_shard, same);
  for (const Handover kind : {Handover::expert_scatter, Handover::expert_collect})
    plans[plan_of(kind)] = plan.of_handover(kind);
  if (!sends_once(plan.needs.strategy.experts.dispatcher)) return;
  const Rank inside = mesh.experts / mesh.expert_nodes;
  plans[Plan::rail_exchange] = plan.of_exchange(mesh.expert_nodes, beside * inside);
  plans[Plan::node_exchange] = plan.of_exchange(inside, beside);
}

// Plans the traffic between ranks that share layers or sequences.
void plan_layers(Plans& plans, const Planner& plan) {
  const Mesh& mesh = plan.needs.mesh;
  for (const Handover kind : {Handover::sum, Handover::collect, Handover::scatter, Handover::heads})
    plans[plan_of(kind)] = plan.of_handover(kind);
  if (plan.needs.strategy.tensor_parallel.in_pieces && mesh.apart() > 1)
    plans[Plan::tensor_pass] = plan.of_copies(mesh.tensor);
  if (mesh.ring > 1)
    plans[Plan::ring_pass] = plan_ring_pass(
        plan.cluster, strided_groups(mesh.ranks, mesh.ring, mesh.apart() * mesh.ulysses));
}

// Plans the traffic of each rank for itself, over the host.
void plan_offload(Plans& plans, const Planner& plan) {
  const Strategy& s = plan.needs.strategy;
  const Cluster& cluster = plan.cluster;
  Group world(plan.needs.mesh.ranks);
  std::iota(world.begin(), world.end(), Rank{0});
  if (s.optimizer_place != Offload::none || s.parameter_place != Offload::none ||
      s.activation_place != Offload::none) {
    plans[Plan::to_host] = plan_copy(cluster, Copy::d2h, world);
    plans[Plan::to_device] = plan_copy(cluster, Copy::h2d, world);
    plans[Plan::cpu_update] = plan_cpu_update(cluster, world, host_update_of(cluster, s));
  }
  if (s.optimizer_place == Offload::nvme || s.parameter_place == Offload::nvme) {
    plans[Plan::from_drive] = plan_file(cluster, FileAccess::read, world);
    plans[Plan::to_drive] = plan_file(cluster, FileAccess::write, world);
  }
}

}  // namespace

TrafficNeeds needs_of(const RankPart& rank) {
  const Strategy& strategy = rank.input.strategy;
  TrafficNeeds needs{strategy, rank.mesh, rank.input.model.experts.has_value()};
  // The speed of products carries no traffic, nor does what an update on the device does but for
  // whole matrices: so these keys do not tell plans apart.
  needs.strategy.precision.rate = {};
  needs.strategy.precision.module_call = {};
  needs.strategy.precision.module_call_wide = {};
  if (strategy.optimizer_place != Offload::none || strategy.parameter_place != Offload::none ||
      strategy.activation_place != Offload::none)
    return needs;
  needs.strategy.optimizer = {};
  if (strategy.optimizer.orthogonal) needs.strategy.optimizer.orthogonal = Optimizer::Orthogonal{};
  return needs;
}

Plans step_plans(const Cluster& cluster, const TrafficNeeds& needs) {
  const Planner plan{cluster, needs};
  Plans plans;
  plan_shards(plans, plan);
  plan_experts(plans, plan);
  plan_layers(plans, plan);
  plan_offload(plans, plan);
  plans[Plan::neighbours] = plan_neighbours(cluster);
  return plans;
}

}  // namespace stepsim
