// The page of `stepsim serve`: what is chosen becomes a link and a question, and answers are drawn.

let state = null;
const answers = {a: null, b: null, gap: null, asking: false};
const asked = {a: "", b: "", gap: ""};
const calls = {a: null, b: null, gap: null};
const status = element("p", {id: "status", role: "status", class: "note"});
const box = element("div", {id: "answers"});

async function post(path, question, signal) {
  try {
    const response = await fetch(`.${path}${location.search}`, {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(question), signal});
    return path === "/page" && response.ok ? await response.text() : await response.json();
  } catch (failed) {
    if (failed.name === "AbortError") throw failed;
    return {problems: [{key: "", text: "no answer: the server has ended, or this took too much time or memory"}]};
  }
}

// Returns nothing when something else is asked meanwhile.
async function call(what, path, question) {
  if (calls[what]) calls[what].abort();
  calls[what] = new AbortController();
  try {
    return await post(path, question, calls[what].signal);
  } catch (failed) {
    return null;
  }
}

function draw() {
  controls.show(state, answers);
  drawAnswers(box, state, answers, downloadPage);
  const told = sidesOf(state).filter((side) => answers[side]).map((side) => {
    const {run} = answers[side], name = state.b ? `${side.toUpperCase()}: ` : "";
    return name + (run ? `${seconds(run.step_time_s)} a step, ${verdictWords[run.verdict]}` : "cannot be run as it stands");
  });
  status.textContent = told.join("; ");
}

async function askStep(side) {
  const question = questionOf(state, [side]), text = JSON.stringify(question);
  if (asked[side] === text) return;
  asked[side] = text;
  box.setAttribute("aria-busy", "true");
  if (!answers[side]) status.textContent = "computing \u2026";
  const first = await call(side, "/step", question);
  if (!first) return;
  answers[side] = {keys: (answers[side] || {}).keys, ...first, drawing: Boolean(first.run)};
  draw();
  box.setAttribute("aria-busy", "false");
  if (!first.run) return;
  const drawn = await call(side, "/step", {...question, interval: true});
  if (!drawn) return;
  answers[side] = {...(drawn.run ? drawn : first), drawing: false};
  draw();
}

async function askGap() {
  const sound = state.b && answers.a && answers.b && answers.a.run && answers.b.run;
  const question = sound ? questionOf(state, ["a", "b"]) : null, text = JSON.stringify(question);
  if (asked.gap === text) return;
  asked.gap = text;
  if (calls.gap) calls.gap.abort();
  Object.assign(answers, {gap: null, asking: Boolean(question)});
  draw();
  if (!question) return;
  const gap = await call("gap", "/gap", question);
  if (!gap) return;
  Object.assign(answers, {gap, asking: false});
  draw();
}

let waiting = 0;

// Nobody types a number in a tenth of a second.
function changed(wait = 0) {
  clearTimeout(waiting);
  waiting = setTimeout(async () => {
    const link = await linkOf(state);
    history.replaceState(null, "", link);
    if (!state.b) {
      answers.b = null;
      asked.b = "";
    }
    if (calls.gap) calls.gap.abort();
    asked.gap = "";
    draw();
    await Promise.all(sidesOf(state).map(askStep));
    askGap();
  }, wait);
}

async function downloadPage(event) {
  const button = event.target, label = button.textContent;
  button.disabled = true;
  button.textContent = "Making the page \u2026";
  const page = await post("/page", questionOf(state, sidesOf(state)));
  button.disabled = false;
  button.textContent = label;
  if (typeof page === "string") saveAs("stepsim.html", "text/html", page);
  else status.textContent = page.problems.map(({text}) => text).join("\n");
}

// Each file goes where its kind belongs: a model, DeepSpeed's file of this side, or what it begins with.
async function drop(side, files) {
  const read = await Promise.all(files.map(async (file) => ({name: file.name.replace(/[^A-Za-z0-9._-]/g, "_"), text: await file.text()})));
  const told = await post("/file", {files: read});
  if (told.problems) {
    answers[side] = {...answers[side], problems: told.problems};  // all else stays as it was
    return draw();
  }
  read.forEach(({name, text}) => { state.files[name] = text; });
  const role = (word) => told.files.filter((file) => file.role === word).map(({name}) => name).pop();
  const source = role("source"), {set} = state[side];
  if (source) state[side] = {source, set: Object.fromEntries(Object.entries(set).filter(([key]) => key.startsWith("cluster.")))};
  if (role("model")) state[side].set.model = role("model");
  if (role("deepspeed") && !source) state[side].set["strategy.deepspeed"] = role("deepspeed");
  changed();
}

const controls = new Controls({
  set(side, key, value) {
    if ((state[side].set[key] || "") === value) return;
    if (value) state[side].set[key] = value;
    else delete state[side].set[key];
    changed(120);
  },
  source(side, source) {
    state[side] = {source, set: {}};
    changed();
  },
  add(key) {
    controls.add(key);
    draw();
    const field = document.getElementById(`a-${key}`);
    if (field) field.focus();
  },
  beside() {
    state.b = {source: state.a.source, set: {...state.a.set}};
    changed();
  },
  remove() {
    state.b = null;
    changed();
  },
  drop,
});

// Nothing can be begun with these files of named folders.
function leftOut(files) {
  return files.length ? element("details", {id: "left-out"}, element("summary", {}, `${files.length} file${files.length === 1 ? "" : "s"} of your folders left out`),
    element("ul", {}, ...files.map((text) => element("li", {}, text)))) : "";
}

async function begin() {
  state = await stateOf(location.hash);
  changed();
}

document.getElementById("contents").remove();
document.getElementById("head").append(element("h1", {}, document.title),
  element("p", {class: "subtitle"}, "Choose a model, a machine and settings, or drop a config.json, a trainer's file, script or notebook, a DeepSpeed file or a scenario. The link of this page says all that is chosen."), status);
document.getElementById("page").append(leftOut(data.left_out), controls.element, box);
addEventListener("dragover", (event) => event.preventDefault());
addEventListener("drop", (event) => {
  event.preventDefault();
  if (event.dataTransfer.files.length) drop("a", [...event.dataTransfer.files]);
});
addEventListener("hashchange", begin);
begin().then(() => { document.documentElement.dataset.ready = "yes"; });
