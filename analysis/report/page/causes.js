// A cause says why an operation is there; this knows its colour, and what the word means. style.css
// holds the colours.

const meanings = {
  compute: "kernels of the forward and the backward pass",
  recompute: "the forward pass again, because its activations were not kept",
  launch: "the host starting kernels, one after the other",
  module_hooks: "Python that runs around every module",
  gather_bytes: "collecting sharded parameters: the time the bytes take",
  gather_latency: "collecting sharded parameters: waits and calls, whatever the size",
  gradient_reduce: "summing gradients across GPUs, with the copies that go with it",
  moe_all_to_all: "sending tokens to their experts and back",
  routing_sync: "the host waiting to hear which expert got how many tokens",
  offload_transfer: "copies to and from host memory",
  cpu_optimizer: "the optimizer's update on host cores",
  optimizer: "the optimizer's update on the GPU",
  tensor_parallel: "summing and sharing what ranks computed of one layer together",
  sequence_parallel: "exchanging heads, keys and values of a sequence that ranks share",
  stage_transfer: "what a pipeline stage hands on to the next one or back",
  pipeline_bubble: "a pipeline stage waiting for another one",
  weight_sync: "bringing new weights to the engine that generates",
  generation: "generating responses",
  checkpoint_save: "writing a checkpoint",
  wait: "learners have no batch yet",
  communication: "gathers and reductions of training that nothing hides",
  drain: "engines finish their responses before weights change",
  gather: "learners gather parameters for the engines",
  broadcast: "weights on their way to the engines",
  per_tensor: "calls, copies and bookkeeping of each tensor of a weight sync",
  iterations: "calls of a weight sync that wait for engines at work",
  parking: "learners' states on their way to host memory and back",
  pause: "engines are put to sleep and woken",
  other: "what belongs to no other cause",
  idle: "nothing ran",
  residual: "",
};

const colours = {
  known: new Map(),
  of(variable) {
    if (!this.known.has(variable))
      this.known.set(variable, getComputedStyle(document.documentElement).getPropertyValue(variable).trim() || "#8b9199");
    return this.known.get(variable);
  },
};

function causeColour(cause) {
  return colours.of(`--cause-${cause.replace(/_/g, "-")}`);
}

// Returns black or white, whichever reads better on the colour.
function textOn(colour) {
  const {r, g, b} = d3.rgb(colour);
  return 0.299 * r + 0.587 * g + 0.114 * b > 150 ? "#111" : "#fff";
}

function swatch(cause) {
  return element("span", {class: "swatch", style: `background:var(--cause-${cause.replace(/_/g, "-")})`});
}

// One cause may be looked at alone; everything that draws asks here, and is told when it changes.
const focus = {
  cause: null,
  listeners: [],
  set(cause) {
    this.cause = cause;
    this.listeners.forEach((listener) => listener());
  },
  fades(cause) { return this.cause !== null && this.cause !== cause; },
};

// Shows the causes of the steps, as buttons that single one out.
function legend(causes) {
  const buttons = causes.map((cause) => element("button", {
    type: "button", "aria-pressed": "false", title: meanings[cause] || "", "data-cause": cause,
    onclick: () => focus.set(focus.cause === cause ? null : cause),
  }, swatch(cause), words(cause)));
  focus.listeners.push(() => buttons.forEach((button) =>
    button.setAttribute("aria-pressed", String(focus.cause === button.dataset.cause))));
  return element("div", {class: "legend", role: "group", "aria-label": "Causes: press one to see it alone"}, ...buttons);
}
