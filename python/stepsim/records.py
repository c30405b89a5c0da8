"""What the program prints with --json. Made by make_records.py; docs/json.md says more."""

from typing import Any, TypedDict

HeadScenario = TypedDict(
    "HeadScenario",
    {
        "title": "str",  # its name
        "source": "str",  # the path or name that was given
        "set": "list[Any]",  # what --set changed, as KEY=VALUE
        "resolved": "str",  # the scenario with all that was set: YAML that can be run again
    },
    total=False,
)

HeadTaken = TypedDict(
    "HeadTaken",
    {
        "method": "str",  # what trains
        "batch": "str",  # rows of an optimizer step, and their length
        "precision": "str",  # of weights, gradients and states
        "optimizer": "str",  # and where its states are
        "sharding": "str",  # how GPUs share the work
        "checkpointing": "str",  # what the backward pass computes again
        "attention": "str",  # its kernel
        "loss": "str",  # how it is computed
        "release": "str",  # of the framework, as far as it is described
        "unsaid": "list[Any]",  # keys that no file says: defaults and assumptions, marked *
    },
    total=False,
)

HeadNotModelled = TypedDict(
    "HeadNotModelled",
    {
        "key": "str",  # of the file
        "value": "str",  # there
        "effect": "str",  # which way the real run differs, and by how much
        "needs_memory": "bool",  # what is counted is too little
    },
    total=False,
)

HeadAssumptions = TypedDict(
    "HeadAssumptions",
    {
        "what": "str",  # what the file does not hold
        "taken": "str",  # what was taken
        "because": "str",  # why that
        "change": "str",  # options that say something else
    },
    total=False,
)

Result = TypedDict(
    "Result",
    {
        "result": "str",  # what this is
        "schema": "float",  # number of this form
        "version": "str",  # of stepsim
        "scenario": "HeadScenario",  # what was asked
        "notes": "list[Any]",  # what was read and makes no difference, and what is unusual
        "taken": "HeadTaken",  # what the scenario was read as, in the field's words
        "not_modelled": "list[HeadNotModelled]",  # what time or memory is without
        "assumptions": "list[HeadAssumptions]",  # what a file of another program leaves open, and what was taken
        "guesses": "list[Any]",  # constants behind this that are guesses
    },
    total=False,
)

RunMovedMostBy = TypedDict(
    "RunMovedMostBy",
    {
        "constant": "str",  # constant
        "grade": "str",  # how far it can be trusted
        "at_low_s": "float",  # with the constant at its low end
        "at_high_s": "float",  # with the constant at its high end
    },
    total=False,
)

RunWallMovedMostBy = TypedDict(
    "RunWallMovedMostBy",
    {
        "constant": "str",  # constant
        "grade": "str",  # how far it can be trusted
        "at_low_s": "float",  # with the constant at its low end
        "at_high_s": "float",  # with the constant at its high end
    },
    total=False,
)

RunBatches = TypedDict(
    "RunBatches",
    {
        "effective_batch": "float",  # sequences or pairs to a step
        "optimizer_steps": "float",  # of the run
        "iterations": "float",  # micro-batches of each rank
        "epochs": "float",  # over the data
        "iterations_per_second": "float",  # micro-batches
    },
    total=False,
)

RunSave = TypedDict(
    "RunSave",
    {
        "bytes": "float",  # of one checkpoint
        "weight_bytes": "float",  # of it weights
        "state_bytes_per_rank": "float",  # of it states, each rank
        "files": "float",  # in so many files
        "time_s": "float",  # training waits for one
        "behind_s": "float",  # beyond that, until it is written
        "count": "float",  # in the whole run
        "share_of_wall": "float | None",  # of the whole job
    },
    total=False,
)

RunEvaluation = TypedDict(
    "RunEvaluation",
    {
        "pass_s": "float",  # over one micro-batch
        "passes": "float",  # of one evaluation; 0: its rows are not known
        "time_s": "float",  # of one evaluation
        "count": "float",  # in the whole run
    },
    total=False,
)

RunResume = TypedDict(
    "RunResume",
    {
        "bytes": "float",  # read by all ranks
        "skipped_micro_batches": "float",  # made again by each rank
        "time_s": "float",  # until the first step begins
    },
    total=False,
)

RunFailedAllocation = TypedDict(
    "RunFailedAllocation",
    {
        "moment": "str",  # in which
        "operation": "str",  # for which
        "class": "str",  # of what
        "bytes": "float",  # that are asked for
        "allocated_before": "float",  # held already
    },
    total=False,
)

RunHostFailedAllocation = TypedDict(
    "RunHostFailedAllocation",
    {
        "moment": "str",  # in which
        "operation": "str",  # for which
        "class": "str",  # of what
        "bytes": "float",  # that are asked for
        "allocated_before": "float",  # held already
    },
    total=False,
)

RunHost = TypedDict(
    "RunHost",
    {
        "peak_bytes": "float",  # the most that a node holds
        "capacity_bytes": "float",  # that it has
        "moment": "str",  # of the peak
        "pinned_bytes": "float",  # between steps
        "pageable_bytes": "float",  # between steps
        "disk_bytes": "float",  # on the drives of a node
        "disk_capacity_bytes": "float | None",  # of these drives
        "failed_allocation": "RunHostFailedAllocation | None",  # the first request that fails
    },
    total=False,
)

RunMemoryLog = TypedDict(
    "RunMemoryLog",
    {
        "counts": "str",  # allocated, reserved, device or unsaid
        "binary": "bool",  # its GB are 2^30 bytes
        "allocated_bytes": "float",  # of tensors, in the program's order; of a pipeline's first stage where the log is that one's
    },
    total=False,
)

RunBreakdown = TypedDict(
    "RunBreakdown",
    {
        "cause": "str",  # where the time goes
        "exposed_s": "float",  # exposed
        "share": "float",  # share
        "hidden_s": "float",  # hidden
    },
    total=False,
)

RunLost = TypedDict(
    "RunLost",
    {
        "what": "str",  # is lost
        "at_s": "float",  # of the step
        "step_time_s": "float",  # of a step without it
        "resume_s": "float | None",  # until the last checkpoint is read
        "steps_again": "float | None",  # since that, in the mean
    },
    total=False,
)

RunEngine = TypedDict(
    "RunEngine",
    {
        "name": "str",  # simgrid, own, or both where only some replays were SimGrid's
        "version": "str",  # of SimGrid; empty where it played nothing
        "difference": "float | None",  # between the makespans of both engines, the largest, as a share
        "energy_difference": "float | None",  # between what SimGrid's plugins meter and the integral, the largest of a device, as a share; null: they are switched on where energy is asked for
    },
    total=False,
)

RunEnergyByCause = TypedDict(
    "RunEnergyByCause",
    {
        "cause": "str",  # where the energy goes
        "energy_j": "float",  # energy
        "share": "float",  # share
        "gpus_j": "float",  # GPUs
        "hosts_j": "float",  # hosts
        "network_j": "float",  # network
    },
    total=False,
)

RunEnergy = TypedDict(
    "RunEnergy",
    {
        "step_j": "float",  # of a step, by all GPUs, hosts and the network between them
        "step_interval_j": "list[float] | None",  # 8 of 10 draws: of a step
        "gpus_j": "float",  # of it
        "hosts_j": "float",  # of it
        "network_j": "float",  # of it
        "standing_w": "float",  # what all draw while they do nothing
        "job_kwh": "float | None",  # the whole job, or what is left of it
        "job_interval_kwh": "list[float] | None",  # 8 of 10 draws: the whole job
        "by_cause": "list[RunEnergyByCause]",  # they add up to the step
    },
    total=False,
)

RunCost = TypedDict(
    "RunCost",
    {
        "of": "str",  # the whole job where its length is known, else a step
        "gpu_hours": "float",  # of it
        "price": "float | None",  # in the money of --price
        "offer": "str | None",  # whose price it is, of which kind and day; null: the user's own
        "budget_steps": "float | None",  # that --budget-money buys
        "budget_tokens": "float | None",  # likewise
        "energy_kwh": "float | None",  # of it: by --power, or else as predicted
    },
    total=False,
)

RunFasterChanges = TypedDict(
    "RunFasterChanges",
    {
        "change": "str",  # to be made, in the file's own words
        "set": "list[Any]",  # the same as KEY=VALUE
        "step_time_s": "float | None",  # one optimizer step then
        "tokens_per_second_per_gpu": "float | None",  # then, padding left out
        "gain": "float",  # of tokens per second
        "peak_memory_bytes": "float | None",  # needed then
    },
    total=False,
)

RunFaster = TypedDict(
    "RunFaster",
    {
        "changes": "list[RunFasterChanges]",  # each alone, the fastest first
        "tried": "float",  # so many changes
        "left_out": "float",  # as the step is long
    },
    total=False,
)

RunBeside = TypedDict(
    "RunBeside",
    {
        "kind": "str",  # of log
        "phase": "str",  # where in its course the run is
        "counts": "str",  # what the log counts
        "done": "float",  # of them
        "total": "float | None",  # of them
        "seen_s": "float | None",  # of one of them in the run
        "recent_s": "float | None",  # of the last ones
        "predicted_s": "float",  # of one of them
        "error": "float | None",  # of the prediction
        "inside": "bool | None",  # the run lies in the likely range
        "memory_bytes": "float | None",  # of a GPU in the run
    },
    total=False,
)

RunToMakeItFitRemedies = TypedDict(
    "RunToMakeItFitRemedies",
    {
        "change": "str",  # what would make it fit
        "set": "list[Any]",  # the same as KEY=VALUE
        "peak_memory_bytes": "float",  # needed
        "verdict": "str",  # verdict
        "step_time_s": "float | None",  # step
        "tokens_per_second_per_gpu": "float | None",  # tok/s/GPU
    },
    total=False,
)

RunToMakeItFitPairs = TypedDict(
    "RunToMakeItFitPairs",
    {
        "change": "str",  # what would make it fit
        "set": "list[Any]",  # the same as KEY=VALUE
        "peak_memory_bytes": "float",  # needed
        "verdict": "str",  # verdict
        "step_time_s": "float | None",  # step
        "tokens_per_second_per_gpu": "float | None",  # tok/s/GPU
    },
    total=False,
)

RunToMakeItFitMoreNodes = TypedDict(
    "RunToMakeItFitMoreNodes",
    {
        "change": "str",  # what would make it fit
        "set": "list[Any]",  # the same as KEY=VALUE
        "peak_memory_bytes": "float",  # needed
        "verdict": "str",  # verdict
        "step_time_s": "float | None",  # step
        "tokens_per_second_per_gpu": "float | None",  # tok/s/GPU
    },
    total=False,
)

RunToMakeItFit = TypedDict(
    "RunToMakeItFit",
    {
        "remedies": "list[RunToMakeItFitRemedies]",  # single changes that would make it fit
        "pairs": "list[RunToMakeItFitPairs]",  # of changes, where no single one is enough
        "more_nodes": "list[RunToMakeItFitMoreNodes]",  # that would make it fit
    },
    total=False,
)

RunVerdictHangsOn = TypedDict(
    "RunVerdictHangsOn",
    {
        "what": "str",  # is not said
        "taken": "str",  # instead
        "other": "str",  # what others choose
        "peak_memory_bytes": "float",  # needed then
        "verdict": "str",  # then
    },
    total=False,
)

RunResult = TypedDict(
    "RunResult",
    {
        "step_time_s": "float",  # one optimizer step
        "tokens_per_second_per_gpu": "float",  # padding left out
        "model_flops_utilisation": "float",  # of the bf16 peak, recomputation not counted
        "model_flops_utilisation_attention_in_rows": "float",  # the same, attention over whole rows
        "model_flops_matrices": "float",  # of a GPU and step
        "model_flops_attention": "float",  # of a GPU and step, causal
        "interval_s": "list[float] | None",  # 8 of 10 draws: step time
        "tokens_per_second_per_gpu_interval": "list[float] | None",  # 8 of 10 draws: throughput
        "peak_memory_interval_bytes": "list[float] | None",  # 8 of 10 draws: memory
        "wall_interval_h": "list[float] | None",  # 8 of 10 draws: the whole job
        "samples": "float",  # draws of the constants that could run
        "drawn_s": "list[Any]",  # step time of each
        "moved_most_by": "list[RunMovedMostBy]",  # constants that move the step time most
        "wall_moved_most_by": "list[RunWallMovedMostBy]",  # constants that move the number of steps most
        "wall_h": "float | None",  # the whole job, or what is left of it
        "batches": "RunBatches | None",  # what a step and the run are made of
        "save": "RunSave | None",  # what saving costs
        "evaluation": "RunEvaluation | None",  # passes over rows held back
        "resume": "RunResume | None",  # what resuming costs
        "failures": "dict[str, Any] | None",  # what is left of the time when parts of the machine fail
        "peak_memory_bytes": "float",  # needed of a GPU, with slack and libraries
        "capacity_bytes": "float",  # what a framework can allocate
        "verdict": "str",  # fits: at least 9 in 10 such runs do, tight: at least half, or oom
        "chance": "float",  # that it fits: the share of such runs that do
        "chance_on_host": "float",  # the same of a node's host memory alone
        "margin_bytes": "float",  # left over, or missing
        "margin_interval_bytes": "list[float]",  # with the constants at their worse and better ends
        "stage": "float | None",  # the fullest one of a pipeline
        "phase": "str",  # of the peak
        "operation": "str",  # at the peak
        "classes": "dict[str, Any]",  # what is held at the peak
        "shown_by_device_bytes": "float",  # what nvidia-smi shows
        "shown_by_device_interval_bytes": "list[float]",  # nine in ten of layouts
        "mapped_before_update_bytes": "float | None",  # when an update begins, where each step gives memory back; else null
        "reserved_bytes": "float",  # that the allocator has after two steps, used or not
        "context_bytes": "float",  # of the framework's context
        "moments": "dict[str, Any]",  # the most held in each moment
        "failed_allocation": "RunFailedAllocation | None",  # the first request that fails
        "host": "RunHost",  # memory of a node's host
        "memory_log": "RunMemoryLog",  # what the framework's own log says
        "gpus": "float",  # that train
        "ops": "float",  # operations of the step
        "breakdown": "list[RunBreakdown]",  # where the time goes: every instant of a rank has one cause
        "lost": "RunLost | None",  # a GPU or link is, during the step, which ends there
        "engine": "RunEngine | None",  # that played it
        "energy": "RunEnergy | None",  # what it takes; null: a file does not say what its part draws
        "cost": "RunCost | None",  # with --price or --power
        "faster": "RunFaster | None",  # what would make it faster, with --faster
        "beside": "RunBeside | None",  # with --beside: the real run
        "to_make_it_fit": "RunToMakeItFit | None",  # with --faster, where it does not
        "verdict_hangs_on": "list[RunVerdictHangsOn]",  # what no file says, and with which another verdict holds
    },
    total=False,
)

GrpoMemoryLearner = TypedDict(
    "GrpoMemoryLearner",
    {
        "start_bytes": "float",  # once it runs
        "training_bytes": "float",  # at the peak of training
        "sync_bytes": "float",  # at the peak of a weight sync
        "capacity_bytes": "float",  # that it has
    },
    total=False,
)

GrpoMemoryEngine = TypedDict(
    "GrpoMemoryEngine",
    {
        "start_bytes": "float",  # once it runs
        "training_bytes": "float",  # at the peak of training
        "sync_bytes": "float",  # at the peak of a weight sync
        "capacity_bytes": "float",  # that it has
    },
    total=False,
)

GrpoMemoryHost = TypedDict(
    "GrpoMemoryHost",
    {
        "start_bytes": "float",  # once it runs
        "training_bytes": "float",  # at the peak of training
        "sync_bytes": "float",  # at the peak of a weight sync
        "capacity_bytes": "float",  # that it has
    },
    total=False,
)

GrpoMemory = TypedDict(
    "GrpoMemory",
    {
        "learner": "GrpoMemoryLearner",  # a GPU that trains
        "engine": "GrpoMemoryEngine",  # a GPU that generates
        "host": "GrpoMemoryHost",  # a node's host
        "cache_tokens": "float",  # that an engine's cache holds
    },
    total=False,
)

GrpoCost = TypedDict(
    "GrpoCost",
    {
        "of": "str",  # the whole job where its length is known, else a step
        "gpu_hours": "float",  # of it
        "price": "float | None",  # in the money of --price
        "offer": "str | None",  # whose price it is, of which kind and day; null: the user's own
        "budget_steps": "float | None",  # that --budget-money buys
        "budget_tokens": "float | None",  # likewise
        "energy_kwh": "float | None",  # of it: by --power, or else as predicted
    },
    total=False,
)

GrpoEngine = TypedDict(
    "GrpoEngine",
    {
        "name": "str",  # simgrid, own, or both where only some replays were SimGrid's
        "version": "str",  # of SimGrid; empty where it played nothing
        "difference": "float | None",  # between the makespans of both engines, the largest, as a share
        "energy_difference": "float | None",  # between what SimGrid's plugins meter and the integral, the largest of a device, as a share; null: they are switched on where energy is asked for
    },
    total=False,
)

GrpoFasterChanges = TypedDict(
    "GrpoFasterChanges",
    {
        "change": "str",  # to be made, in the file's own words
        "set": "list[Any]",  # the same as KEY=VALUE
        "step_time_s": "float | None",  # one optimizer step then
        "tokens_per_second_per_gpu": "float | None",  # then, padding left out
        "gain": "float",  # of tokens per second
        "peak_memory_bytes": "float | None",  # needed then
    },
    total=False,
)

GrpoFaster = TypedDict(
    "GrpoFaster",
    {
        "changes": "list[GrpoFasterChanges]",  # each alone, the fastest first
        "tried": "float",  # so many changes
        "left_out": "float",  # as the step is long
    },
    total=False,
)

GrpoToMakeItFitRemedies = TypedDict(
    "GrpoToMakeItFitRemedies",
    {
        "change": "str",  # what would make it fit
        "set": "list[Any]",  # the same as KEY=VALUE
        "peak_memory_bytes": "float",  # needed
        "verdict": "str",  # verdict
        "step_time_s": "float | None",  # step
        "tokens_per_second_per_gpu": "float | None",  # tok/s/GPU
    },
    total=False,
)

GrpoToMakeItFitPairs = TypedDict(
    "GrpoToMakeItFitPairs",
    {
        "change": "str",  # what would make it fit
        "set": "list[Any]",  # the same as KEY=VALUE
        "peak_memory_bytes": "float",  # needed
        "verdict": "str",  # verdict
        "step_time_s": "float | None",  # step
        "tokens_per_second_per_gpu": "float | None",  # tok/s/GPU
    },
    total=False,
)

GrpoToMakeItFitMoreNodes = TypedDict(
    "GrpoToMakeItFitMoreNodes",
    {
        "change": "str",  # what would make it fit
        "set": "list[Any]",  # the same as KEY=VALUE
        "peak_memory_bytes": "float",  # needed
        "verdict": "str",  # verdict
        "step_time_s": "float | None",  # step
        "tokens_per_second_per_gpu": "float | None",  # tok/s/GPU
    },
    total=False,
)

GrpoToMakeItFit = TypedDict(
    "GrpoToMakeItFit",
    {
        "remedies": "list[GrpoToMakeItFitRemedies]",  # single changes that would make it fit
        "pairs": "list[GrpoToMakeItFitPairs]",  # of changes, where no single one is enough
        "more_nodes": "list[GrpoToMakeItFitMoreNodes]",  # that would make it fit
    },
    total=False,
)

GrpoResult = TypedDict(
    "GrpoResult",
    {
        "step_time_s": "float | None",  # one step, mean behind the warm-up
        "steps_per_second": "float | None",  # optimizer steps
        "responses_per_second": "float | None",  # trained on
        "generated_tokens_per_second": "float | None",  # by all engines
        "trained_tokens_per_second": "float | None",  # with their prompts
        "training_time_s": "float | None",  # learners, in a step
        "sync_time_s": "float | None",  # weights to the engines, in a step
        "learner_utilisation": "float | None",  # share of the time in which learners train
        "engine_utilisation": "float | None",  # share of the time in which engines are not empty
        "card_utilisation": "float | None",  # share of the time in which the first learner's card is busy
        "running_sequences": "float | None",  # on an engine, mean over time
        "mean_staleness": "float | None",  # steps between generation and training
        "max_staleness": "float | None",  # the most of it
        "stale_share": "float | None",  # of the tokens: thrown away as too old
        "filtered_share": "float | None",  # of the tokens: in groups without a signal
        "given_up_share": "float | None",  # of the tokens: not done, or too many
        "gpu_hours_per_1000_responses": "float | None",  # what a thousand responses cost
        "learner_peak_bytes": "float | None",  # of a GPU that trains
        "phase_wait_s": "float | None",  # learners wait for a batch
        "phase_rewards_s": "float | None",  # rewards of all responses of the step
        "phase_compute_s": "float | None",  # training: kernels and launches
        "phase_communication_s": "float | None",  # training: exposed communication
        "phase_optimizer_s": "float | None",  # training: optimizer
        "phase_critic_s": "float | None",  # training: critic and reward model
        "phase_reference_s": "float | None",  # training: reference model from the host
        "phase_drain_s": "float | None",  # sync: engines finish their responses
        "phase_gather_s": "float | None",  # sync: learners gather
        "phase_broadcast_s": "float | None",  # sync: broadcast to engines
        "phase_per_tensor_s": "float | None",  # sync: calls and copies of each tensor
        "phase_iterations_s": "float | None",  # sync: engines at work when a call comes
        "phase_parking_s": "float | None",  # sync: learners' states to the host and back
        "phase_pause_s": "float | None",  # sync: engines put to sleep and woken
        "learners": "float",  # GPUs that train
        "engines": "float",  # inference engines
        "stranded_gpus": "float",  # GPUs that do neither
        "gpus": "float",  # of all of them
        "interval_s": "list[float] | None",  # 8 of 10 draws: step time
        "drawn_s": "list[Any]",  # step time of each
        "drawn_tokens_per_second_per_gpu": "list[Any]",  # trained, of each
        "wall_h": "float | None",  # the whole job
        "staleness_bound": "float | None",  # steps; null: nothing bounds it
        "first_step_s": "float | None",  # with the first sync
        "start_up_s": "float | None",  # until engines take prompts
        "warmup_steps": "float | None",  # left out of the means
        "preemptions_per_step": "float | None",  # of sequences on engines
        "truncated_share": "float | None",  # of responses: cut at the limit
        "mixed_share": "float | None",  # of responses: by several versions
        "goodput": "float | None",  # share of a run's time, with failures
        "saving_share": "float | None",  # of it: checkpoints
        "lost_share": "float | None",  # of it: steps done again
        "down_share": "float | None",  # of it: until steps go on
        "waiting_share": "float | None",  # of it: for nodes or a place
        "slower_share": "float | None",  # of it: steps on fewer nodes
        "save_steps": "float | None",  # between checkpoints
        "failures": "float | None",  # of the job, in the mean
        "wall_low_h": "float | None",  # one job in ten, by luck, ends before
        "wall_high_h": "float | None",  # one job in ten, by luck, ends after
        "engine_failures": "float | None",  # in the whole run
        "expected_engine_failures": "float | None",  # in measured steps
        "unbroken_step_time_s": "float | None",  # a step where no engine fails
        "events": "float | None",  # that were handled
        "bottleneck": "str | None",  # what the step waits for most
        "verdict": "str",  # fits or oom
        "reason": "str | None",  # the first thing that does not fit
        "memory": "GrpoMemory",  # at three moments
        "warnings": "list[Any]",  # what is not as it should be
        "cost": "GrpoCost | None",  # with --price or --power
        "engine": "GrpoEngine | None",  # that played it
        "faster": "GrpoFaster | None",  # what would make it faster, with --faster
        "to_make_it_fit": "GrpoToMakeItFit | None",  # with --faster, where it does not
    },
    total=False,
)

MemoryFailedAllocation = TypedDict(
    "MemoryFailedAllocation",
    {
        "moment": "str",  # in which
        "operation": "str",  # for which
        "class": "str",  # of what
        "bytes": "float",  # that are asked for
        "allocated_before": "float",  # held already
    },
    total=False,
)

MemoryHostFailedAllocation = TypedDict(
    "MemoryHostFailedAllocation",
    {
        "moment": "str",  # in which
        "operation": "str",  # for which
        "class": "str",  # of what
        "bytes": "float",  # that are asked for
        "allocated_before": "float",  # held already
    },
    total=False,
)

MemoryHost = TypedDict(
    "MemoryHost",
    {
        "peak_bytes": "float",  # the most that a node holds
        "capacity_bytes": "float",  # that it has
        "moment": "str",  # of the peak
        "pinned_bytes": "float",  # between steps
        "pageable_bytes": "float",  # between steps
        "disk_bytes": "float",  # on the drives of a node
        "disk_capacity_bytes": "float | None",  # of these drives
        "failed_allocation": "MemoryHostFailedAllocation | None",  # the first request that fails
    },
    total=False,
)

MemoryBesideKinds = TypedDict(
    "MemoryBesideKinds",
    {
        "kind": "str",  # what it is for
        "real_bytes": "float",  # at the real run's peak
        "predicted_bytes": "float",  # at the predicted peak
        "error": "float | None",  # of the prediction
        "classes": "list[Any]",  # of the prediction, with bytes
    },
    total=False,
)

MemoryBesideFrames = TypedDict(
    "MemoryBesideFrames",
    {
        "frame": "str",  # file, line and function
        "kind": "str",  # what it is for, where frames tell
        "bytes": "float",  # at the peak
        "requests": "float",  # that this is
    },
    total=False,
)

MemoryBeside = TypedDict(
    "MemoryBeside",
    {
        "peak_bytes": "float",  # that the fullest device held at the most
        "moment": "str",  # of that peak, as far as frames tell
        "reserved_bytes": "float",  # of segments at the most
        "reserved_at_peak_bytes": "float",  # of segments at the peak
        "before_bytes": "float",  # at the peak, from before the recording
        "failed_bytes": "float | None",  # of the first request without room
        "device": "float",  # the fullest one
        "entries": "float",  # of its recording that take memory or give it back; 0: only its end is known
        "from_start": "bool",  # nothing was in use when the recording began
        "predicted_peak_bytes": "float",  # of the same
        "predicted_moment": "str",  # of that
        "predicted_reserved_bytes": "float",  # of the same
        "error": "float",  # of the predicted peak
        "kinds": "list[MemoryBesideKinds]",  # what it was for, largest first
        "frames": "list[MemoryBesideFrames]",  # who asked for it, largest first
    },
    total=False,
)

MemoryRemedies = TypedDict(
    "MemoryRemedies",
    {
        "change": "str",  # what would make it fit
        "set": "list[Any]",  # the same as KEY=VALUE
        "peak_memory_bytes": "float",  # needed
        "verdict": "str",  # verdict
        "step_time_s": "float | None",  # step
        "tokens_per_second_per_gpu": "float | None",  # tok/s/GPU
    },
    total=False,
)

MemoryPairs = TypedDict(
    "MemoryPairs",
    {
        "change": "str",  # what would make it fit
        "set": "list[Any]",  # the same as KEY=VALUE
        "peak_memory_bytes": "float",  # needed
        "verdict": "str",  # verdict
        "step_time_s": "float | None",  # step
        "tokens_per_second_per_gpu": "float | None",  # tok/s/GPU
    },
    total=False,
)

MemoryMoreNodes = TypedDict(
    "MemoryMoreNodes",
    {
        "change": "str",  # what would make it fit
        "set": "list[Any]",  # the same as KEY=VALUE
        "peak_memory_bytes": "float",  # needed
        "verdict": "str",  # verdict
        "step_time_s": "float | None",  # step
        "tokens_per_second_per_gpu": "float | None",  # tok/s/GPU
    },
    total=False,
)

MemoryVerdictHangsOn = TypedDict(
    "MemoryVerdictHangsOn",
    {
        "what": "str",  # is not said
        "taken": "str",  # instead
        "other": "str",  # what others choose
        "peak_memory_bytes": "float",  # needed then
        "verdict": "str",  # then
    },
    total=False,
)

MemoryResult = TypedDict(
    "MemoryResult",
    {
        "peak_memory_bytes": "float",  # needed of a GPU, with slack and libraries
        "capacity_bytes": "float",  # what a framework can allocate
        "verdict": "str",  # fits: at least 9 in 10 such runs do, tight: at least half, or oom
        "chance": "float",  # that it fits: the share of such runs that do
        "chance_on_host": "float",  # the same of a node's host memory alone
        "margin_bytes": "float",  # left over, or missing
        "margin_interval_bytes": "list[float]",  # with the constants at their worse and better ends
        "stage": "float | None",  # the fullest one of a pipeline
        "phase": "str",  # of the peak
        "operation": "str",  # at the peak
        "classes": "dict[str, Any]",  # what is held at the peak
        "shown_by_device_bytes": "float",  # what nvidia-smi shows
        "shown_by_device_interval_bytes": "list[float]",  # nine in ten of layouts
        "mapped_before_update_bytes": "float | None",  # when an update begins, where each step gives memory back; else null
        "reserved_bytes": "float",  # that the allocator has after two steps, used or not
        "context_bytes": "float",  # of the framework's context
        "moments": "dict[str, Any]",  # the most held in each moment
        "failed_allocation": "MemoryFailedAllocation | None",  # the first request that fails
        "host": "MemoryHost",  # memory of a node's host
        "largest_micro_batch": "float | None",  # that fits in 9 of 10 runs; null where this does not fit
        "beside": "MemoryBeside | None",  # with --beside: the snapshot of a real run
        "remedies": "list[MemoryRemedies]",  # single changes that would make it fit
        "pairs": "list[MemoryPairs]",  # of changes, where no single one is enough
        "more_nodes": "list[MemoryMoreNodes]",  # that would make it fit
        "verdict_hangs_on": "list[MemoryVerdictHangsOn]",  # what no file says, and with which another verdict holds
    },
    total=False,
)

GrpoMemoryMemoryLearner = TypedDict(
    "GrpoMemoryMemoryLearner",
    {
        "start_bytes": "float",  # once it runs
        "training_bytes": "float",  # at the peak of training
        "sync_bytes": "float",  # at the peak of a weight sync
        "capacity_bytes": "float",  # that it has
    },
    total=False,
)

GrpoMemoryMemoryEngine = TypedDict(
    "GrpoMemoryMemoryEngine",
    {
        "start_bytes": "float",  # once it runs
        "training_bytes": "float",  # at the peak of training
        "sync_bytes": "float",  # at the peak of a weight sync
        "capacity_bytes": "float",  # that it has
    },
    total=False,
)

GrpoMemoryMemoryHost = TypedDict(
    "GrpoMemoryMemoryHost",
    {
        "start_bytes": "float",  # once it runs
        "training_bytes": "float",  # at the peak of training
        "sync_bytes": "float",  # at the peak of a weight sync
        "capacity_bytes": "float",  # that it has
    },
    total=False,
)

GrpoMemoryMemory = TypedDict(
    "GrpoMemoryMemory",
    {
        "learner": "GrpoMemoryMemoryLearner",  # a GPU that trains
        "engine": "GrpoMemoryMemoryEngine",  # a GPU that generates
        "host": "GrpoMemoryMemoryHost",  # a node's host
        "cache_tokens": "float",  # that an engine's cache holds
    },
    total=False,
)

GrpoMemoryRemedies = TypedDict(
    "GrpoMemoryRemedies",
    {
        "change": "str",  # what would make it fit
        "set": "list[Any]",  # the same as KEY=VALUE
        "peak_memory_bytes": "float",  # needed
        "verdict": "str",  # verdict
        "step_time_s": "float | None",  # step
        "tokens_per_second_per_gpu": "float | None",  # tok/s/GPU
    },
    total=False,
)

GrpoMemoryPairs = TypedDict(
    "GrpoMemoryPairs",
    {
        "change": "str",  # what would make it fit
        "set": "list[Any]",  # the same as KEY=VALUE
        "peak_memory_bytes": "float",  # needed
        "verdict": "str",  # verdict
        "step_time_s": "float | None",  # step
        "tokens_per_second_per_gpu": "float | None",  # tok/s/GPU
    },
    total=False,
)

GrpoMemoryMoreNodes = TypedDict(
    "GrpoMemoryMoreNodes",
    {
        "change": "str",  # what would make it fit
        "set": "list[Any]",  # the same as KEY=VALUE
        "peak_memory_bytes": "float",  # needed
        "verdict": "str",  # verdict
        "step_time_s": "float | None",  # step
        "tokens_per_second_per_gpu": "float | None",  # tok/s/GPU
    },
    total=False,
)

GrpoMemoryResult = TypedDict(
    "GrpoMemoryResult",
    {
        "verdict": "str",  # fits or oom
        "reason": "str | None",  # the first thing that does not fit
        "memory": "GrpoMemoryMemory",  # at three moments
        "remedies": "list[GrpoMemoryRemedies]",  # single changes that would make it fit
        "pairs": "list[GrpoMemoryPairs]",  # of changes, where no single one is enough
        "more_nodes": "list[GrpoMemoryMoreNodes]",  # that would make it fit
    },
    total=False,
)

ExplainAEngine = TypedDict(
    "ExplainAEngine",
    {
        "name": "str",  # simgrid, own, or both where only some replays were SimGrid's
        "version": "str",  # of SimGrid; empty where it played nothing
        "difference": "float | None",  # between the makespans of both engines, the largest, as a share
        "energy_difference": "float | None",  # between what SimGrid's plugins meter and the integral, the largest of a device, as a share; null: they are switched on where energy is asked for
    },
    total=False,
)

ExplainACriticalPathCauses = TypedDict(
    "ExplainACriticalPathCauses",
    {
        "compute": "float",  # one key for each cause
    },
    total=False,
)

ExplainACriticalPath = TypedDict(
    "ExplainACriticalPath",
    {
        "part": "str",  # a stretch of the step
        "seconds": "float",  # it takes
        "causes": "ExplainACriticalPathCauses",  # of it
    },
    total=False,
)

ExplainA = TypedDict(
    "ExplainA",
    {
        "scenario": "str",  # as it was called
        "title": "str",  # its name
        "step_time_s": "float",  # one optimizer step
        "tokens_per_second_per_gpu": "float",  # padding left out
        "sequences": "float",  # of a step, all ranks
        "tokens": "float",  # of a step without padding, all ranks
        "energy_j": "float | None",  # of a step: GPUs, hosts and the network
        "peak_memory_bytes": "float",  # needed of a GPU
        "capacity_bytes": "float",  # what a framework can allocate
        "verdict": "str",  # fits, tight or oom
        "measured_s": "list[float] | None",  # what somebody saw a step take
        "operations": "float",  # that were replayed
        "engine": "ExplainAEngine | None",  # that played it
        "step_time_interval_s": "list[float] | None",  # 8 of 10 draws: step time
        "tokens_per_second_per_gpu_interval": "list[float] | None",  # 8 of 10 draws: throughput
        "peak_memory_interval_bytes": "list[float] | None",  # 8 of 10 draws: memory
        "critical_path": "list[ExplainACriticalPath]",  # what the step waits for
    },
    total=False,
)

ExplainBEngine = TypedDict(
    "ExplainBEngine",
    {
        "name": "str",  # simgrid, own, or both where only some replays were SimGrid's
        "version": "str",  # of SimGrid; empty where it played nothing
        "difference": "float | None",  # between the makespans of both engines, the largest, as a share
        "energy_difference": "float | None",  # between what SimGrid's plugins meter and the integral, the largest of a device, as a share; null: they are switched on where energy is asked for
    },
    total=False,
)

ExplainBCriticalPathCauses = TypedDict(
    "ExplainBCriticalPathCauses",
    {
        "compute": "float",  # one key for each cause
    },
    total=False,
)

ExplainBCriticalPath = TypedDict(
    "ExplainBCriticalPath",
    {
        "part": "str",  # a stretch of the step
        "seconds": "float",  # it takes
        "causes": "ExplainBCriticalPathCauses",  # of it
    },
    total=False,
)

ExplainB = TypedDict(
    "ExplainB",
    {
        "scenario": "str",  # as it was called
        "title": "str",  # its name
        "step_time_s": "float",  # one optimizer step
        "tokens_per_second_per_gpu": "float",  # padding left out
        "sequences": "float",  # of a step, all ranks
        "tokens": "float",  # of a step without padding, all ranks
        "energy_j": "float | None",  # of a step: GPUs, hosts and the network
        "peak_memory_bytes": "float",  # needed of a GPU
        "capacity_bytes": "float",  # what a framework can allocate
        "verdict": "str",  # fits, tight or oom
        "measured_s": "list[float] | None",  # what somebody saw a step take
        "operations": "float",  # that were replayed
        "engine": "ExplainBEngine | None",  # that played it
        "step_time_interval_s": "list[float] | None",  # 8 of 10 draws: step time
        "tokens_per_second_per_gpu_interval": "list[float] | None",  # 8 of 10 draws: throughput
        "peak_memory_interval_bytes": "list[float] | None",  # 8 of 10 draws: memory
        "critical_path": "list[ExplainBCriticalPath]",  # what the step waits for
    },
    total=False,
)

ExplainRowsConstants = TypedDict(
    "ExplainRowsConstants",
    {
        "name": "str",  # constant
        "value": "float",  # what it is taken to be, SI
        "low": "float",  # the least it may be
        "high": "float",  # the most it may be
        "unit": "str",  # of the three
        "grade": "str",  # how far it can be trusted
        "weight": "float",  # change of the cause by that of the constant
    },
    total=False,
)

ExplainRows = TypedDict(
    "ExplainRows",
    {
        "cause": "str",  # cause; idle: the rank waits for others
        "seconds": "float",  # of the gap: exposed in A less exposed in B
        "counterfactual_s": "float | None",  # the step that has the cause, of two A, without it
        "a_without_s": "float | None",  # A without it
        "b_without_s": "float | None",  # B without it
        "only_in": "str",  # a or b, if the other does not have it
        "a_exposed_s": "float",  # exposed in A
        "a_hidden_s": "float",  # hidden in A
        "b_exposed_s": "float",  # exposed in B
        "b_hidden_s": "float",  # hidden in B
        "interval_s": "list[float] | None",  # 8 of 10 draws: of the gap
        "counterfactual": "str",  # the same in words
        "constants": "list[ExplainRowsConstants]",  # what it is made of, the most important first
    },
    total=False,
)

ExplainSettingsRows = TypedDict(
    "ExplainSettingsRows",
    {
        "key": "str",  # of the scenario, or a constant
        "a": "str",  # in A, in words
        "b": "str",  # in B, in words
        "seconds": "float",  # of the gap
        "stderr_s": "float",  # standard error of that
        "a_with_it_alone_s": "float",  # A with this setting alone as in B
        "cause": "str | None",  # whose exposed time that changes most; of the largest rows
        "peak_memory_bytes": "float | None",  # needed then
        "verdict": "str | None",  # fits, tight or oom, then
    },
    total=False,
)

ExplainSettingsWithoutEffect = TypedDict(
    "ExplainSettingsWithoutEffect",
    {
        "key": "str",  # of the scenario, or a constant
        "a": "str",  # in A, in words
        "b": "str",  # in B, in words
    },
    total=False,
)

ExplainSettings = TypedDict(
    "ExplainSettings",
    {
        "rows": "list[ExplainSettingsRows]",  # with the rest they add up to the gap
        "rest_s": "float",  # what no setting says
        "without_effect": "list[ExplainSettingsWithoutEffect]",  # differ and change nothing here
        "exact": "bool",  # all mixtures of the settings were replayed
        "replays": "float",  # of mixtures of A and B
    },
    total=False,
)

ExplainDrawsMovedMostBy = TypedDict(
    "ExplainDrawsMovedMostBy",
    {
        "constant": "str",  # constant
        "grade": "str",  # how far it can be trusted
        "gap_at_low_s": "float",  # with the constant at its low end
        "gap_at_high_s": "float",  # with the constant at its high end
    },
    total=False,
)

ExplainDraws = TypedDict(
    "ExplainDraws",
    {
        "made": "float",  # draws of the constants
        "most": "float",  # that were allowed
        "a_slower": "float",  # in which A takes longer
        "same_largest_row": "float",  # in which the largest row is the same
        "gap_interval_s": "list[float]",  # 8 of 10 draws
        "moved_most_by": "list[ExplainDrawsMovedMostBy]",  # constants that move the gap most
    },
    total=False,
)

ExplainAtLimit = TypedDict(
    "ExplainAtLimit",
    {
        "a_micro_batch": "float",  # the largest that fits
        "b_micro_batch": "float",  # the largest that fits
        "a_tokens_per_second_per_gpu": "float",  # with that
        "b_tokens_per_second_per_gpu": "float",  # with that
        "flips": "bool",  # the other one wins there
    },
    total=False,
)

ExplainResult = TypedDict(
    "ExplainResult",
    {
        "summary": "str",  # in a sentence
        "a": "ExplainA",  # the first step
        "b": "ExplainB",  # the second step
        "gap_s": "float",  # A takes so much longer than B
        "rows": "list[ExplainRows]",  # they add up to the gap
        "settings": "ExplainSettings | None",  # the gap by setting
        "draws": "ExplainDraws | None",  # how sure it is
        "parting": "str | None",  # where the two first differ
        "equal": "list[Any]",  # on both sides
        "not_equal": "list[Any]",  # what makes it unfair
        "does_not_fit": "list[Any]",  # what could not run
        "at_limit": "ExplainAtLimit | None",  # each with the largest micro-batch that fits
    },
    total=False,
)

CheckClaimsScenariosAskedScenario = TypedDict(
    "CheckClaimsScenariosAskedScenario",
    {
        "title": "str",  # its name
        "source": "str",  # the path or name that was given
        "set": "list[Any]",  # what --set changed, as KEY=VALUE
        "resolved": "str",  # the scenario with all that was set: YAML that can be run again
    },
    total=False,
)

CheckClaimsScenariosAskedTaken = TypedDict(
    "CheckClaimsScenariosAskedTaken",
    {
        "method": "str",  # what trains
        "batch": "str",  # rows of an optimizer step, and their length
        "precision": "str",  # of weights, gradients and states
        "optimizer": "str",  # and where its states are
        "sharding": "str",  # how GPUs share the work
        "checkpointing": "str",  # what the backward pass computes again
        "attention": "str",  # its kernel
        "loss": "str",  # how it is computed
        "release": "str",  # of the framework, as far as it is described
        "unsaid": "list[Any]",  # keys that no file says: defaults and assumptions, marked *
    },
    total=False,
)

CheckClaimsScenariosAskedNotModelled = TypedDict(
    "CheckClaimsScenariosAskedNotModelled",
    {
        "key": "str",  # of the file
        "value": "str",  # there
        "effect": "str",  # which way the real run differs, and by how much
        "needs_memory": "bool",  # what is counted is too little
    },
    total=False,
)

CheckClaimsScenariosAskedAssumptions = TypedDict(
    "CheckClaimsScenariosAskedAssumptions",
    {
        "what": "str",  # what the file does not hold
        "taken": "str",  # what was taken
        "because": "str",  # why that
        "change": "str",  # options that say something else
    },
    total=False,
)

CheckClaimsScenariosAsked = TypedDict(
    "CheckClaimsScenariosAsked",
    {
        "scenario": "CheckClaimsScenariosAskedScenario",  # what was asked
        "notes": "list[Any]",  # what was read and makes no difference, and what is unusual
        "taken": "CheckClaimsScenariosAskedTaken",  # what the scenario was read as, in the field's words
        "not_modelled": "list[CheckClaimsScenariosAskedNotModelled]",  # what time or memory is without
        "assumptions": "list[CheckClaimsScenariosAskedAssumptions]",  # what a file of another program leaves open, and what was taken
        "guesses": "list[Any]",  # constants behind this that are guesses
    },
    total=False,
)

CheckClaimsScenarios = TypedDict(
    "CheckClaimsScenarios",
    {
        "name": "str",  # in the claim
        "asked": "CheckClaimsScenariosAsked | None",  # what was read; null: the settings make no scenario
    },
    total=False,
)

CheckClaimsConditions = TypedDict(
    "CheckClaimsConditions",
    {
        "name": "str",  # of the condition
        "set": "list[Any]",  # in its scenarios, as NAME: KEY=VALUE
        "probability": "float",  # share of the draws in which it holds
        "draws": "float",  # of the constants
        "value": "float",  # at the stated constants
        "low": "float",  # of 8 of 10 draws
        "high": "float",  # of 8 of 10 draws
    },
    total=False,
)

CheckClaimsParts = TypedDict(
    "CheckClaimsParts",
    {
        "text": "str",  # a part of the claim
        "holds": "float",  # in so many draws
        "draws": "float",  # of the constants
        "value": "float",  # at the stated constants
        "low": "float",  # of 8 of 10 draws
        "high": "float",  # of 8 of 10 draws
    },
    total=False,
)

CheckClaimsMovedMostBy = TypedDict(
    "CheckClaimsMovedMostBy",
    {
        "constant": "str",  # constant
        "grade": "str",  # how far it can be trusted
        "value_at_low": "float",  # with the constant at its low end
        "value_at_high": "float",  # with the constant at its high end
    },
    total=False,
)

CheckClaims = TypedDict(
    "CheckClaims",
    {
        "id": "str",  # of the claim
        "text": "str",  # what is claimed
        "verdict": "str",  # supported, refuted, depends or undecided
        "probability": "float | None",  # share of the draws in which it holds
        "sentence": "str",  # the verdict in words
        "reason": "str",  # of the verdict
        "scenarios": "list[CheckClaimsScenarios]",  # that it is about
        "conditions": "list[CheckClaimsConditions]",  # under each of which it was judged
        "parts": "list[CheckClaimsParts]",  # if it has several
        "to_measure": "list[Any]",  # constants that would decide it
        "moved_most_by": "list[CheckClaimsMovedMostBy]",  # constants that move the figure most
    },
    total=False,
)

CheckResult = TypedDict(
    "CheckResult",
    {
        "claims": "list[CheckClaims]",  # in the order of their files
    },
    total=False,
)

SweepScenario = TypedDict(
    "SweepScenario",
    {
        "title": "str",  # its name
        "source": "str",  # the path or name that was given
        "set": "list[Any]",  # in all points, as KEY=VALUE
        "resolved": "str",  # as read, before anything is set
    },
    total=False,
)

SweepAssumptions = TypedDict(
    "SweepAssumptions",
    {
        "what": "str",  # what the file does not hold
        "taken": "str",  # what was taken
        "because": "str",  # why that
        "change": "str",  # options that say something else
    },
    total=False,
)

SweepScalingsPoints = TypedDict(
    "SweepScalingsPoints",
    {
        "point": "float",  # its place among the points
        "gpus": "float",  # of the whole cluster
        "efficiency": "float",  # throughput per GPU over that of the smallest machine
        "marginal": "float",  # what the last growth brought
    },
    total=False,
)

SweepScalings = TypedDict(
    "SweepScalings",
    {
        "name": "str",  # the other settings
        "fixed_batch": "bool",  # strong scaling
        "knee_gpus": "float | None",  # no larger machine brings half of what it could
        "points": "list[SweepScalingsPoints]",  # by machine size
    },
    total=False,
)

SweepWhatIfs = TypedDict(
    "SweepWhatIfs",
    {
        "change": "str",  # of the fastest point
        "gain": "float",  # of tokens per second
        "tokens_per_second": "float",  # with it
    },
    total=False,
)

SweepNearestRemedies = TypedDict(
    "SweepNearestRemedies",
    {
        "change": "str",  # what would make it fit
        "set": "list[Any]",  # the same as KEY=VALUE
        "peak_memory_bytes": "float",  # needed
        "verdict": "str",  # verdict
        "step_time_s": "float | None",  # step
        "tokens_per_second_per_gpu": "float | None",  # tok/s/GPU
    },
    total=False,
)

SweepNearest = TypedDict(
    "SweepNearest",
    {
        "point": "float",  # its place
        "remedies": "list[SweepNearestRemedies]",  # single changes that would make it fit
        "pairs": "list[Any]",  # of changes, where no single one is enough
        "more_nodes": "list[Any]",  # that would make it fit
    },
    total=False,
)

SweepEngine = TypedDict(
    "SweepEngine",
    {
        "name": "str",  # simgrid, own, or both where only some replays were SimGrid's
        "version": "str",  # of SimGrid; empty where it played nothing
        "difference": "float | None",  # between the makespans of both engines, the largest, as a share
        "energy_difference": "float | None",  # between what SimGrid's plugins meter and the integral, the largest of a device, as a share; null: they are switched on where energy is asked for
    },
    total=False,
)

SweepResult = TypedDict(
    "SweepResult",
    {
        "scenario": "SweepScenario",  # what was varied
        "assumptions": "list[SweepAssumptions]",  # what a file of another program leaves open, and what was taken
        "notes": "list[Any]",  # what was read and makes no difference, and what is unusual
        "points": "list[dict[str, Any]]",  # one for each combination
        "alike": "bool",  # all points that can run have the same figures: none is best
        "fastest": "float | None",  # point with the most tokens a second
        "cheapest": "float | None",  # point with the least money per token, or without prices GPU time
        "smallest": "float | None",  # point that can run on the fewest GPUs
        "front": "list[Any]",  # points that no other beats in both
        "scalings": "list[SweepScalings]",  # points that differ in the machine's size
        "what_ifs": "list[SweepWhatIfs]",  # changes that gain most
        "nearest": "SweepNearest | None",  # where no point can run: the one that lacks least memory
        "engine": "SweepEngine | None",  # that played it
    },
    total=False,
)

SearchResult = TypedDict(
    "SearchResult",
    {
        "key": "str",  # that is searched
        "goal": "str",  # max or min
        "condition": "str",  # such that
        "method": "str",  # bounds, bisection or grid
        "found": "str | None",  # its value
        "at_end_of_range": "bool",  # a further value might do as well
        "points": "list[dict[str, Any]]",  # that were tried
    },
    total=False,
)

PlanOpen = TypedDict(
    "PlanOpen",
    {
        "plans": "float",  # that were neither replayed nor put aside
        "too_dear": "float",  # of them: a replay takes more memory than is allowed
        "interrupted": "bool",  # by a signal; else time was up
        "least_share": "float",  # of the goal of the first: none of them comes below
    },
    total=False,
)

PlanBest = TypedDict(
    "PlanBest",
    {
        "plan": "str",  # in words
        "settings": "list[Any]",  # that make it, as KEY=VALUE
        "step_time_s": "float",  # one optimizer step
        "step_time_range_s": "list[float]",  # 8 of 10 draws of the constants
        "first_share": "float",  # of the draws, in which it is the best of these
        "tokens_per_second_per_gpu": "float",  # padding left out
        "peak_memory_bytes": "float",  # needed on a GPU
        "energy_j": "float | None",  # of a step: GPUs, hosts and the network
        "gpus": "float",  # of the whole cluster
        "least_step_time_s": "float",  # that it could not go below
        "least_memory_bytes": "float",  # that it could not go below
        "binds": "str",  # what the step waits for most
    },
    total=False,
)

PlanOtherBatches = TypedDict(
    "PlanOtherBatches",
    {
        "rows": "float",  # of a step
        "plan": "str",  # the best one, in words
        "step_time_s": "float",  # one optimizer step
        "gain": "float",  # by the goal, for each row
    },
    total=False,
)

PlanSecondConstant = TypedDict(
    "PlanSecondConstant",
    {
        "name": "str",  # of the constant
        "ratio_at_low": "float",  # second over first with it at its low end
        "ratio_at_high": "float",  # and at its high end
    },
    total=False,
)

PlanSecond = TypedDict(
    "PlanSecond",
    {
        "won": "float",  # draws in which it is the better of the two, by the goal
        "draws": "float",  # of so many
        "cause": "str",  # on which it loses most time; none with the goal memory
        "lost_s": "float",  # by it
        "constant": "PlanSecondConstant | None",  # that moves their ratio most
        "equal_at": "float | None",  # value of the constant at which both come to the same, SI
    },
    total=False,
)

PlanOwn = TypedDict(
    "PlanOwn",
    {
        "plan": "str",  # in words
        "reason": "str",  # why it cannot run; empty: it can
        "place": "float | None",  # among the best, from 1; null: behind them
        "step_time_s": "float",  # one optimizer step
        "peak_memory_bytes": "float",  # needed on a GPU
        "more": "float",  # by the goal, than the first
        "cause": "str",  # on which it loses most time beside the first
        "lost_s": "float",  # by it
    },
    total=False,
)

PlanEngine = TypedDict(
    "PlanEngine",
    {
        "name": "str",  # simgrid, own, or both where only some replays were SimGrid's
        "version": "str",  # of SimGrid; empty where it played nothing
        "difference": "float | None",  # between the makespans of both engines, the largest, as a share
        "energy_difference": "float | None",  # between what SimGrid's plugins meter and the integral, the largest of a device, as a share; null: they are switched on where energy is asked for
    },
    total=False,
)

PlanResult = TypedDict(
    "PlanResult",
    {
        "goal": "str",  # what is least
        "job": "str",  # what is planned
        "plans": "float",  # that come out even
        "cannot_fit": "float",  # of them, by their bounds
        "cannot_be_best": "float",  # of them, by their bounds
        "replayed": "float",  # of them
        "failed": "float",  # of those replayed: did not fit, or could not run
        "tight": "float",  # of those replayed: fit, and leave less memory than they have to
        "free_share": "float",  # of a GPU's memory that a plan has to leave
        "draws": "float",  # of the constants, that each of the best has been through
        "open": "PlanOpen | None",  # what the search has left open; null: nothing
        "best": "list[PlanBest]",  # the best first
        "other_batches": "list[PlanOtherBatches]",  # near the one asked about that are better, the best first
        "second": "PlanSecond | None",  # what would put the second first
        "own": "PlanOwn | None",  # the split that the job has; null: it is none of these plans
        "engine": "PlanEngine | None",  # that played it
        "cost": "dict[str, Any] | None",  # with --price or --power
    },
    total=False,
)

ValidateRows = TypedDict(
    "ValidateRows",
    {
        "id": "str",  # run
        "family": "str",  # family
        "metric": "str",  # metric
        "predicted": "float | None",  # a figure, SI; of a verdict: fits or oom
        "measured": "list[float]",  # a figure or a range, SI; of a verdict: fits or oom
        "error": "float | None",  # outside of the range, over its nearer end
        "band": "float | None",  # error that its file asks for
        "inside_band": "bool | None",  # it is met
        "interval": "list[float] | None",  # 8 of 10 draws
        "inside_interval": "bool | None",  # that holds the measured one
    },
    total=False,
)

ValidateFamilies = TypedDict(
    "ValidateFamilies",
    {
        "name": "str",  # family
        "rows": "float",  # rows
        "median_abs_error": "float",  # median |error|
        "p90_abs_error": "float",  # 90 %
        "signed_mean": "float",  # signed mean
    },
    total=False,
)

ValidateScenariosAskedScenario = TypedDict(
    "ValidateScenariosAskedScenario",
    {
        "title": "str",  # its name
        "source": "str",  # the path or name that was given
        "set": "list[Any]",  # what --set changed, as KEY=VALUE
        "resolved": "str",  # the scenario with all that was set: YAML that can be run again
    },
    total=False,
)

ValidateScenariosAskedTaken = TypedDict(
    "ValidateScenariosAskedTaken",
    {
        "method": "str",  # what trains
        "batch": "str",  # rows of an optimizer step, and their length
        "precision": "str",  # of weights, gradients and states
        "optimizer": "str",  # and where its states are
        "sharding": "str",  # how GPUs share the work
        "checkpointing": "str",  # what the backward pass computes again
        "attention": "str",  # its kernel
        "loss": "str",  # how it is computed
        "release": "str",  # of the framework, as far as it is described
        "unsaid": "list[Any]",  # keys that no file says: defaults and assumptions, marked *
    },
    total=False,
)

ValidateScenariosAskedNotModelled = TypedDict(
    "ValidateScenariosAskedNotModelled",
    {
        "key": "str",  # of the file
        "value": "str",  # there
        "effect": "str",  # which way the real run differs, and by how much
        "needs_memory": "bool",  # what is counted is too little
    },
    total=False,
)

ValidateScenariosAskedAssumptions = TypedDict(
    "ValidateScenariosAskedAssumptions",
    {
        "what": "str",  # what the file does not hold
        "taken": "str",  # what was taken
        "because": "str",  # why that
        "change": "str",  # options that say something else
    },
    total=False,
)

ValidateScenariosAsked = TypedDict(
    "ValidateScenariosAsked",
    {
        "scenario": "ValidateScenariosAskedScenario",  # what was asked
        "notes": "list[Any]",  # what was read and makes no difference, and what is unusual
        "taken": "ValidateScenariosAskedTaken",  # what the scenario was read as, in the field's words
        "not_modelled": "list[ValidateScenariosAskedNotModelled]",  # what time or memory is without
        "assumptions": "list[ValidateScenariosAskedAssumptions]",  # what a file of another program leaves open, and what was taken
        "guesses": "list[Any]",  # constants behind this that are guesses
    },
    total=False,
)

ValidateScenarios = TypedDict(
    "ValidateScenarios",
    {
        "id": "str",  # run
        "asked": "ValidateScenariosAsked",  # what was read
    },
    total=False,
)

ValidateResult = TypedDict(
    "ValidateResult",
    {
        "rows": "list[ValidateRows]",  # figures, then verdicts
        "families": "list[ValidateFamilies]",  # errors of the figures by family
        "scenarios": "list[ValidateScenarios]",  # that were given
    },
    total=False,
)

AnchorMoved = TypedDict(
    "AnchorMoved",
    {
        "name": "str",  # constant that moved
        "from": "str",  # catalogue
        "to": "str",  # anchored
        "place": "float",  # place in its range
    },
    total=False,
)

AnchorResult = TypedDict(
    "AnchorResult",
    {
        "title": "str",  # of the run
        "said": "str",  # in words
        "from": "list[Any]",  # what the logs say
        "measured_s": "float | None",  # step of the run
        "measured_memory_bytes": "float | None",  # of a GPU in the run
        "stated_s": "float",  # step as the catalogue has it
        "anchored_s": "float",  # the same step, anchored
        "interval_s": "list[float]",  # 8 of 10 draws before
        "anchored_interval_s": "list[float]",  # and after
        "draws": "float",  # of the constants
        "effective_draws": "float",  # so many of one weight say as much
        "moved": "list[AnchorMoved]",  # constants that moved by more than luck, the one that moves the step most first
    },
    total=False,
)

DiagnosisSuspects = TypedDict(
    "DiagnosisSuspects",
    {
        "name": "str",  # of the fault's file, of two with + between; empty: nothing is wrong
        "says": "str",  # what may be wrong
        "probability": "float",  # how likely
        "step_time_s": "float",  # step
        "memory_bytes": "float",  # memory
        "busy": "float",  # GPU busy
        "evidence": "list[Any]",  # words of the logs that speak for it
        "test": "str",  # that tells it apart
        "shows": "str",  # what the test shows then
        "cure": "str",  # what to do
    },
    total=False,
)

DiagnosisResult = TypedDict(
    "DiagnosisResult",
    {
        "measured_s": "float | None",  # step of the run
        "measured_memory_bytes": "float | None",  # of a GPU in the run
        "measured_busy": "float | None",  # share of the time that nvidia-smi saw a kernel
        "measured_spread": "float | None",  # ln of long over short lines, of eight in ten
        "kernels": "list[Any]",  # of a profile beside the stated step
        "suspects": "list[DiagnosisSuspects]",  # the likeliest first
    },
    total=False,
)

CollectiveRows = TypedDict(
    "CollectiveRows",
    {
        "bytes": "float",  # size
        "time_s": "float",  # time
        "algbw_GBps": "float",  # algbw GB/s
        "busbw_GBps": "float",  # busbw GB/s
        "algorithm": "str",  # algorithm
        "protocol": "str",  # protocol
        "busiest_link": "str",  # busiest link
    },
    total=False,
)

CollectiveEngine = TypedDict(
    "CollectiveEngine",
    {
        "name": "str",  # simgrid, own, or both where only some replays were SimGrid's
        "version": "str",  # of SimGrid; empty where it played nothing
        "difference": "float | None",  # between the makespans of both engines, the largest, as a share
        "energy_difference": "float | None",  # between what SimGrid's plugins meter and the integral, the largest of a device, as a share; null: they are switched on where energy is asked for
    },
    total=False,
)

CollectiveResult = TypedDict(
    "CollectiveResult",
    {
        "operation": "str",  # collective or copy
        "node": "str",  # kind of node
        "nodes": "float",  # of it
        "network": "str",  # between them
        "ranks": "float",  # that take part
        "guesses": "list[Any]",  # constants behind this that are guesses
        "rows": "list[CollectiveRows]",  # one for each size
        "engine": "CollectiveEngine | None",  # that played it
        "notes": "list[Any]",  # files of the user's own that were read
    },
    total=False,
)

CompareRows = TypedDict(
    "CompareRows",
    {
        "id": "str",  # of the row
        "source": "str",  # where it is from
        "operation": "str",  # collective or copy
        "ranks": "float",  # that take part
        "bytes": "float",  # of the message
        "compared": "bool",  # a figure was predicted for it
        "measured_s": "float | None",  # time
        "predicted_s": "float | None",  # time
        "error": "float | None",  # of the time
        "machine": "str",  # cluster and nodes
        "algorithm": "str",  # and protocol
        "note": "str",  # what is known about it, or why it is left out
    },
    total=False,
)

CompareSourcesBelow16mib = TypedDict(
    "CompareSourcesBelow16mib",
    {
        "rows": "float",  # that were compared
        "median_abs_error": "float",  # of the time
        "p90_abs_error": "float",  # of the time
        "signed_mean": "float",  # of the time
    },
    total=False,
)

CompareSourcesFrom16mib = TypedDict(
    "CompareSourcesFrom16mib",
    {
        "rows": "float",  # that were compared
        "median_abs_error": "float",  # of the time
        "p90_abs_error": "float",  # of the time
        "signed_mean": "float",  # of the time
    },
    total=False,
)

CompareSources = TypedDict(
    "CompareSources",
    {
        "source": "str",  # where rows are from
        "machine": "str",  # cluster and nodes
        "below_16MiB": "CompareSourcesBelow16mib",  # small messages
        "from_16MiB": "CompareSourcesFrom16mib",  # large messages
        "worst": "float",  # error
    },
    total=False,
)

CompareAllBelow16mib = TypedDict(
    "CompareAllBelow16mib",
    {
        "rows": "float",  # that were compared
        "median_abs_error": "float",  # of the time
        "p90_abs_error": "float",  # of the time
        "signed_mean": "float",  # of the time
    },
    total=False,
)

CompareAllFrom16mib = TypedDict(
    "CompareAllFrom16mib",
    {
        "rows": "float",  # that were compared
        "median_abs_error": "float",  # of the time
        "p90_abs_error": "float",  # of the time
        "signed_mean": "float",  # of the time
    },
    total=False,
)

CompareAll = TypedDict(
    "CompareAll",
    {
        "below_16MiB": "CompareAllBelow16mib",  # small messages
        "from_16MiB": "CompareAllFrom16mib",  # large messages
        "worst": "float",  # error
    },
    total=False,
)

CompareResult = TypedDict(
    "CompareResult",
    {
        "rows": "list[CompareRows]",  # one for each measured row
        "sources": "list[CompareSources]",  # errors by source and machine
        "all": "CompareAll",  # errors of all
    },
    total=False,
)

KernelsRows = TypedDict(
    "KernelsRows",
    {
        "id": "str",  # row
        "gpu": "str",  # GPU
        "kernel": "str",  # kernel
        "m": "float",  # M
        "n": "float",  # N
        "k": "float",  # K
        "measured_s": "float",  # time
        "predicted_s": "float",  # time
        "measured_flops": "float",  # measured TFLOP/s
        "predicted_flops": "float",  # predicted
        "error": "float",  # error
    },
    total=False,
)

KernelsFamilies = TypedDict(
    "KernelsFamilies",
    {
        "name": "str",  # family
        "rows": "float",  # rows
        "median_abs_error": "float",  # median |error|
        "p90_abs_error": "float",  # 90 %
        "signed_mean": "float",  # signed mean
        "worst_error": "float",  # worst
        "worst": "str",  # row of that
    },
    total=False,
)

KernelsLeftOut = TypedDict(
    "KernelsLeftOut",
    {
        "id": "str",  # left out
        "reason": "str",  # why
    },
    total=False,
)

KernelsResult = TypedDict(
    "KernelsResult",
    {
        "rows": "list[KernelsRows]",  # one for each kernel
        "families": "list[KernelsFamilies]",  # errors by GPU and kind
        "left_out": "list[KernelsLeftOut]",  # rows without a prediction
    },
    total=False,
)

ListKind = TypedDict(
    "ListKind",
    {
        "name": "str",  # of the entry
        "title": "str",  # what it is
    },
    total=False,
)

ListResult = TypedDict(
    "ListResult",
    {
    },
    total=False,
)

EntryConstants = TypedDict(
    "EntryConstants",
    {
        "name": "str",  # constant
        "value": "float",  # what it is taken to be, SI
        "low": "float",  # the least it may be
        "high": "float",  # the most it may be
        "unit": "str",  # of the three
        "grade": "str",  # how far it can be trusted
        "source": "str",  # where it is from
    },
    total=False,
)

EntryResult = TypedDict(
    "EntryResult",
    {
        "name": "str",  # of the entry
        "kind": "str",  # GPU, node, network, cluster, stack, optimizer or engine
        "title": "str",  # what it is
        "facts": "list[Any]",  # what is no constant
        "constants": "list[EntryConstants]",  # with range, grade and source
    },
    total=False,
)

ModelDimensionsExperts = TypedDict(
    "ModelDimensionsExperts",
    {
        "count": "float",  # in a layer
        "per_token": "float",  # that a token goes to
        "width": "float",  # of one
        "shared_width": "float",  # of those for every token
        "first_dense": "float",  # layers at the bottom without experts
        "every": "float",  # of so many layers one has experts
    },
    total=False,
)

ModelDimensions = TypedDict(
    "ModelDimensions",
    {
        "layers": "float",  # number
        "hidden": "float",  # width
        "vocabulary": "float",  # tokens
        "longest_sequence": "float",  # tokens
        "heads": "float",  # of queries
        "kv_heads": "float",  # of keys and values
        "head_dim": "float",  # width of one
        "sliding_window": "float",  # tokens; 0: none
        "feed_forward": "float",  # width
        "tied_embeddings": "bool",  # the head is the embedding
        "experts": "ModelDimensionsExperts | None",  # of layers that have them
    },
    total=False,
)

ModelParameters = TypedDict(
    "ModelParameters",
    {
        "dense": "float",  # elements of the class
        "expert": "float",  # elements of the class
        "embedding": "float",  # elements of the class
        "norm": "float",  # elements of the class
        "all": "float",  # elements
        "active_per_token": "float",  # elements
    },
    total=False,
)

ModelResult = TypedDict(
    "ModelResult",
    {
        "name": "str",  # of the model
        "kind": "str",  # model
        "title": "str",  # what it is
        "architecture": "str",  # as config.json calls it
        "source": "str",  # where it is from
        "facts": "list[Any]",  # in words
        "dimensions": "ModelDimensions",  # in numbers
        "parameters": "ModelParameters",  # exact counts
        "buffers": "float",  # elements that are not trained
        "tensors": "float",  # of parameters
        "bf16_bytes": "float",  # of all parameters
        "bf16_gb": "float",  # the same in GB
        "bf16_gib": "float",  # the same in GiB
    },
    total=False,
)

ScenarioAssumptions = TypedDict(
    "ScenarioAssumptions",
    {
        "what": "str",  # what the file does not hold
        "taken": "str",  # what was taken
        "because": "str",  # why that
        "change": "str",  # options that say something else
    },
    total=False,
)

ScenarioKeys = TypedDict(
    "ScenarioKeys",
    {
        "key": "str",  # of the scenario
        "value": "str | None",  # a number, a flag or a text, as a file would say it
        "said": "bool",  # by anybody; else it is the default
        "source": "str | None",  # of what was said
        "line": "float | None",  # in it
        "matters": "bool",  # it changes something, other keys being as they are
    },
    total=False,
)

ScenarioResult = TypedDict(
    "ScenarioResult",
    {
        "name": "str",  # as it was called
        "kind": "str",  # scenario
        "title": "str",  # its name
        "text": "str",  # of the file
        "assumptions": "list[ScenarioAssumptions]",  # what a file of another program leaves open, and what was taken
        "resolved": "dict[str, Any]",  # in words
        "keys": "list[ScenarioKeys]",  # every key, in the order of docs/keys.md
    },
    total=False,
)

KeysKeys = TypedDict(
    "KeysKeys",
    {
        "block": "str",  # of the file; empty: its top
        "key": "str",  # its name
        "kind": "str",  # of its value
        "allowed": "str",  # words or limits
        "default": "str",  # when nobody says it
        "sentence": "str",  # what it is
    },
    total=False,
)

KeysResult = TypedDict(
    "KeysResult",
    {
        "keys": "list[KeysKeys]",  # of a scenario
    },
    total=False,
)

DiffKeysA = TypedDict(
    "DiffKeysA",
    {
        "value": "str | None",  # a number, a flag or a text, as a file would say it
        "said": "bool",  # by anybody; else it is the default
        "source": "str | None",  # of what was said
        "line": "float | None",  # in it
    },
    total=False,
)

DiffKeysB = TypedDict(
    "DiffKeysB",
    {
        "value": "str | None",  # a number, a flag or a text, as a file would say it
        "said": "bool",  # by anybody; else it is the default
        "source": "str | None",  # of what was said
        "line": "float | None",  # in it
    },
    total=False,
)

DiffKeys = TypedDict(
    "DiffKeys",
    {
        "key": "str",  # of the scenario
        "a": "DiffKeysA | None",  # in A; null: A has no such key
        "b": "DiffKeysB | None",  # in B; null: B has no such key
    },
    total=False,
)

DiffModel = TypedDict(
    "DiffModel",
    {
        "name": "str",  # of the figure
        "a": "float | None",  # in A, SI
        "b": "float | None",  # in B, SI
        "unit": "str",  # of both
    },
    total=False,
)

DiffConstants = TypedDict(
    "DiffConstants",
    {
        "name": "str",  # of the figure
        "a": "float | None",  # in A, SI
        "b": "float | None",  # in B, SI
        "unit": "str",  # of both
    },
    total=False,
)

DiffResult = TypedDict(
    "DiffResult",
    {
        "a": "str",  # as it was called
        "b": "str",  # as it was called, and what was set
        "keys": "list[DiffKeys]",  # whose values differ
        "model": "list[DiffModel]",  # figures that differ
        "constants": "list[DiffConstants]",  # that differ
    },
    total=False,
)

TogetherA = TypedDict(
    "TogetherA",
    {
        "name": "str",  # of the scenario
        "alone_s": "float",  # a step without the other job
        "together_s": "float",  # a step while the other job runs, mean
        "shortest_s": "float",  # of these
        "longest_s": "float",  # of these
        "steps": "float",  # so many
        "loses": "float",  # of its time alone
    },
    total=False,
)

TogetherB = TypedDict(
    "TogetherB",
    {
        "name": "str",  # of the scenario
        "alone_s": "float",  # a step without the other job
        "together_s": "float",  # a step while the other job runs, mean
        "shortest_s": "float",  # of these
        "longest_s": "float",  # of these
        "steps": "float",  # so many
        "loses": "float",  # of its time alone
    },
    total=False,
)

TogetherLinks = TypedDict(
    "TogetherLinks",
    {
        "name": "str",  # of the link
        "busy": "float",  # share of the time in which something is on it
    },
    total=False,
)

TogetherEngine = TypedDict(
    "TogetherEngine",
    {
        "name": "str",  # simgrid, own, or both where only some replays were SimGrid's
        "version": "str",  # of SimGrid; empty where it played nothing
        "difference": "float | None",  # between the makespans of both engines, the largest, as a share
        "energy_difference": "float | None",  # between what SimGrid's plugins meter and the integral, the largest of a device, as a share; null: they are switched on where energy is asked for
    },
    total=False,
)

TogetherResult = TypedDict(
    "TogetherResult",
    {
        "a": "TogetherA",  # the first job
        "b": "TogetherB",  # the second job
        "links": "list[TogetherLinks]",  # between nodes that carry both, the busiest first
        "engine": "TogetherEngine | None",  # that played it
    },
    total=False,
)
