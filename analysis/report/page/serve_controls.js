// One chooses a source for each side here, and each key has a field. Fields stay while answers come
// and go, so that nobody is interrupted in typing.

const keysByName = new Map(data.keys.map((facts) => [facts.key, facts]));
const usualFields = [
  ["What is trained", ["model", "job.sequence", "job.document_length.mean", "job.micro_batch", "job.gradient_accumulation", "job.tokens"]],
  ["On what", ["cluster.node", "cluster.nodes", "cluster.gpus", "stack", "strategy.precision"]],
  ["Adapters", ["strategy.lora.rank", "strategy.lora.quantised", "strategy.lora.method"]],
  ["How it is shared and kept", ["strategy.zero", "strategy.checkpointing", "strategy.optimizer", "strategy.offload.optimizer",
    "strategy.offload.parameters", "strategy.tensor_parallel.size", "strategy.pipeline_parallel.size", "strategy.moe.expert_parallel"]]];
const titles = {"cluster.node": "machine", "cluster.gpus": "GPUs in all", "job.document_length.mean": "mean length, packed", "job.tokens": "tokens of the run",
  "strategy.lora.rank": "LoRA rank", "strategy.lora.quantised": "QLoRA: frozen weights", "strategy.lora.method": "method", "strategy.zero": "sharding (ZeRO, FSDP)", "strategy.checkpointing": "recomputation",
  "strategy.tensor_parallel.size": "tensor parallel", "strategy.pipeline_parallel.size": "pipeline stages", "strategy.moe.expert_parallel": "expert parallel"};

function titleOf(key) {
  return titles[key] || words(key.replace(/^(job|strategy|cluster)\./, "").replace(/\./g, " "));
}

function namesList(key) {
  const id = `names-${key}`;
  if (!document.getElementById(id))
    document.body.append(element("datalist", {id}, ...data.names[key].map((name) => element("option", {value: name}))));
  return id;
}

// Does not say again to those who listen what is said already.
function tell(box, text) {
  if (box.textContent !== text) box.textContent = text;
}

// A field is one key: a control for each side, what it is now, and what is wrong with it.
class Field {
  constructor(key, sides, set) {
    this.key = key;
    this.facts = keysByName.get(key) || {kind: "", words: [], allowed: "", default: "", sentence: "a constant, or a key of a block"};
    this.controls = Object.fromEntries(sides.map((side) => [side, this.control(side, set)]));
    this.problems = Object.fromEntries(sides.map((side) => [side, element("div", {role: "alert", "data-side": sides.length > 1 ? side.toUpperCase() : null})]));
    const {allowed, default: usual, sentence} = this.facts;
    const told = `${key}: ${sentence}${allowed && !this.facts.words.length ? `; ${allowed}` : ""}${usual && usual !== "required" ? `; default: ${usual}` : ""}`;
    this.element = element("div", {class: "field", title: told},
      element("label", {for: `${sides[0]}-${key}`}, titleOf(key)), element("div", {class: "inputs"}, ...Object.values(this.controls)),
      element("div", {class: "problem", id: `problem-${key}`}, ...Object.values(this.problems)));
  }
  control(side, set) {
    const {kind, words: allowed} = this.facts, key = this.key;
    const named = {id: `${side}-${key}`, "aria-label": `${titleOf(key)}, ${side.toUpperCase()}`, "aria-describedby": `problem-${key}`};
    const choices = kind === "flag" ? ["true", "false"] : allowed;
    if (choices.length)
      return element("select", {...named, onchange: (event) => set(side, key, event.target.value)},
        element("option", {value: ""}), ...choices.map((word) => element("option", {value: word}, word)));
    const names = data.names[key], number = kind === "number" || kind === "whole number";
    return element("input", {...named, type: "text", autocomplete: "off", spellcheck: "false", inputmode: number ? "decimal" : null,
      list: names ? namesList(key) : null, onchange: (event) => set(side, key, event.target.value.trim()),
      oninput: (event) => {
        const word = event.target.value.trim();
        if (number || (names && names.includes(word)) || word === "") set(side, key, word);
      }});
  }
  // `value`: what the scenario has; `said`: what was chosen here.
  show(side, {value, said, problem, differs}) {
    const control = this.controls[side];
    const now = value === undefined ? "" : value.startsWith("not set: ") ? value.slice(9) : value;
    if (control.tagName === "SELECT") control.options[0].textContent = said ? "as the scenario has it" : now;
    else control.placeholder = now;
    if (said && control.tagName === "SELECT" && ![...control.options].some((option) => option.value === said)) control.append(element("option", {value: said}, said));
    if (document.activeElement !== control || control.tagName === "SELECT") control.value = said || "";
    control.classList.toggle("said", Boolean(said));
    control.classList.toggle("differs", Boolean(differs));
    control.setAttribute("aria-invalid", String(Boolean(problem)));
    tell(this.problems[side], problem);
  }
}

class Controls {
  // `act`: what may be done: set, source, drop, beside, remove.
  constructor(act) {
    this.act = act;
    this.extra = new Set();
    this.element = element("section", {id: "settings", "aria-label": "Settings"});
  }
  build(state) {
    const sides = sidesOf(state), usual = new Set(usualFields.flatMap(([, keys]) => keys));
    for (const side of sides) Object.keys(state[side].set).forEach((key) => { if (!usual.has(key)) this.extra.add(key); });
    this.shape = JSON.stringify([sides, [...this.extra], Object.keys(state.files)]);
    this.fields = new Map();
    const made = (keys) => keys.map((key) => {
      this.fields.set(key, new Field(key, sides, this.act.set));
      return this.fields.get(key).element;
    });
    const groups = usualFields.map(([title, keys]) => element("fieldset", {}, element("legend", {}, title), element("div", {class: "fields"}, ...made(keys))));
    this.element.classList.toggle("two", sides.length > 1);
    this.heads = Object.fromEntries(sides.map((side) => [side, this.head(state, side)]));
    this.others = Object.fromEntries(sides.map((side) => [side, element("div", {class: "problem", role: "alert"})]));
    this.element.replaceChildren(
      element("div", {class: "sides"}, ...sides.map((side) => element("div", {class: "side-head"}, this.heads[side], this.others[side]))),
      ...groups, element("fieldset", {}, element("legend", {}, "Any other key"), element("div", {class: "fields"}, ...made([...this.extra]), this.adder())));
  }
  head(state, side) {
    const group = (label, names) => names.length ? element("optgroup", {label}, ...names.map((name) => element("option", {value: name}, name === data.first ? "a new step" : name))) : "";
    const source = element("select", {id: `source-${side}`, "aria-label": `What ${side.toUpperCase()} begins with`, onchange: (event) => this.act.source(side, event.target.value)},
      group("begin", [data.first]), group("your files", Object.keys(state.files).concat(data.sources.filter((name) => name.startsWith("/")))),
      group("the catalogue's scenarios", data.sources.filter((name) => name !== data.first && !name.startsWith("/"))));
    const picker = element("input", {type: "file", multiple: "", hidden: "", accept: ".yaml,.yml,.json,.toml,.py,.ipynb,.sh", onchange: (event) => this.act.drop(side, [...event.target.files])});
    const button = (label, text, act) => element("button", {type: "button", "aria-label": label, onclick: act}, text);
    return element("div", {class: "controls"}, state.b ? sideMark(side === "a" ? 0 : 1) : "", source, picker,
      button(`Open a file for ${side.toUpperCase()}`, "Open a file\u2026", () => picker.click()),
      side === "b" ? button("Take B away", "Take B away", this.act.remove) : state.b ? "" : button("Put other settings beside these", "Put another beside it", this.act.beside));
  }
  adder() {
    const list = element("datalist", {id: "all-keys"}, ...data.keys.map(({key, sentence}) => element("option", {value: key}, sentence)));
    const input = element("input", {type: "text", list: "all-keys", id: "any-key", autocomplete: "off", spellcheck: "false", placeholder: "strategy.lora.rank"});
    const add = () => {
      const key = input.value.trim();
      if (key) this.act.add(key);
    };
    input.addEventListener("keydown", (event) => { if (event.key === "Enter") add(); });
    return element("div", {class: "field"}, element("label", {for: "any-key"}, "add a key"), element("div", {class: "inputs"}, input, list,
      element("button", {type: "button", onclick: add}, "Add")));
  }
  add(key) { this.extra.add(key); }
  show(state, answers) {
    if (this.shape !== JSON.stringify([sidesOf(state), [...this.extra], Object.keys(state.files)])) this.build(state);
    const values = (side) => new Map(((answers[side] || {}).keys || []).map(({key, value}) => [key, value]));
    const known = {a: values("a"), b: values("b")};
    for (const side of sidesOf(state)) {
      const problems = (answers[side] || {}).problems || [], {source, set} = state[side];
      document.getElementById(`source-${side}`).value = source;
      for (const [key, field] of this.fields)
        field.show(side, {value: known[side].get(key), said: set[key], differs: known.a.size && known.b.size && known.a.get(key) !== known.b.get(key),
          problem: problems.filter((one) => one.key === key).map(({text}) => text).join("\n")});
      tell(this.others[side], problems.filter(({key}) => !this.fields.has(key)).map(({text}) => text).join("\n"));
    }
  }
}
