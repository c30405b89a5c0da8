// The link says what is asked: #a=SOURCE&a.KEY=VALUE&b=SOURCE&b.KEY=VALUE&file.NAME=TEXT. A file's
// text is packed, so that a link with one stays short enough to be sent.

async function through(stream, bytes) {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
}

async function packed(text) {
  const bytes = await through(new CompressionStream("deflate-raw"), text);
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join("")).replace(/\+/g, "-").replace(/\//g, "_");
}

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (letter) => letter.charCodeAt(0));
  return new TextDecoder().decode(await through(new DecompressionStream("deflate-raw"), bytes));
}

async function linkOf(state) {
  const words = new URLSearchParams();
  for (const side of sidesOf(state)) {
    words.append(side, state[side].source);
    for (const [key, value] of Object.entries(state[side].set)) words.append(`${side}.${key}`, value);
  }
  for (const name of filesOf(state)) words.append(`file.${name}`, await packed(state.files[name]));
  return `#${words}`;
}

async function stateOf(link) {
  const state = {a: {source: data.first, set: {}}, b: null, files: {}};
  for (const [word, value] of new URLSearchParams(link.replace(/^#/, ""))) {
    const [head, ...rest] = word.split(".");
    const key = rest.join(".");
    if (head === "file" && key) state.files[key] = await unpacked(value).catch(() => "");
    else if ((head === "a" || head === "b") && !key) state[head] = {source: value, set: {}};
    else if (state[head] && key) state[head].set[key] = value;
  }
  return state;
}

function sidesOf(state) {
  return state.b ? ["a", "b"] : ["a"];
}

// Returns the files that a side still names.
function filesOf(state) {
  const named = sidesOf(state).flatMap((side) => [state[side].source, ...Object.values(state[side].set)]);
  return Object.keys(state.files).filter((name) => named.includes(name) || named.some((word) => state.files[word]));
}

// Returns the question as the server wants it.
function questionOf(state, sides) {
  const question = {files: filesOf(state).map((name) => ({name, text: state.files[name]}))};
  sides.forEach((side, at) => {
    const {source, set} = state[side];
    question["ab"[at]] = {source, set: Object.entries(set).map(([key, value]) => ({key, value}))};
  });
  return question;
}
