// What the page knows and does. Images stay in this tab; they leave it only for the service it came from.

import { $, el, note, percent, plural } from "./dom.js";
import { fromFiles, fromTransfer } from "./files.js";
import { Groups, isUnlike, sorted } from "./groups.js";
import { Viewer, askKey, askMerge, askSplit } from "./dialogs.js";
import * as service from "./service.js";
import { csv, download } from "./table.js";

/** A request holds at most this much; the service may allow less. */
const REQUEST_IMAGES = 32;
const REQUEST_BYTES = 8 << 20;
/** Images, and values of their embeddings, by which a cluster is split: more would not move the cut. */
const SPLIT_IMAGES = 400;
const SPLIT_VALUES = 500_000;
/** Requests under way at one time: one is worked on while the next one arrives. */
const AT_ONCE = 2;

const IMAGE_TYPES = $("files").accept;

let drawing = false;
const state = { images: [], models: [], limits: null, model: null, running: null, waiting: [] };

const groups = new Groups({ open: (image) => viewer.open(image), rename, merge, split });
const viewer = new Viewer({
  list: ordered,
  clusterName: (id) => state.model.clusters[id].name,
  isUnlike: (image) => isUnlike(image, state.model),
  probabilities: (image, signal) => service.probabilities(state.model, image.file, signal).catch(unlessReplaced),
});

service.setKeyDialog(askKey);
wire();
loadModels();

async function loadModels() {
  try {
    const answer = await service.models();
    state.models = answer.models;
    state.limits = answer.limits;
    const chosen = state.model?.name ?? new URLSearchParams(location.hash.slice(1)).get("model");
    useModel(answer.models.find((model) => model.name === chosen) ?? answer.models[0]);
    $("model").replaceChildren(...answer.models.map((model) => el("option", { value: model.name }, model.name)));
    $("model").value = state.model.name;
    $("model").disabled = answer.models.length < 2;
    document.body.dataset.ready = "yes";
    run();
  } catch (error) {
    if (error.status === 401) $("key").hidden = false;
    note(error.message, { bad: true, action: { label: "Try again", run: loadModels } });
  }
}

/** Whatever was found belongs to a model that is no longer there: all images are sorted again by the new one. */
function startOver(why = "The model was replaced by another one; your images are sorted again.") {
  stop();
  viewer.close();
  forgetResults();
  note(why);
  loadModels();
}

function forgetResults() {
  for (const image of state.images) {
    image.result = null;
    image.top = null;
  }
  state.waiting = [...state.images];
  groups.reset();
  draw();
}

/** Starts over where an answer came from another model; hands on every other error. */
function unlessReplaced(error) {
  if (error.code !== service.MODEL_CHANGED) throw error;
  startOver();
  throw new DOMException("replaced", "AbortError");
}

function useModel(model) {
  state.model = model;
  const { input, provenance } = model;
  const scores = Object.entries(model.metrics).map(([name, value]) => `${name} ${Number(value.toPrecision(4))}`).join(", ");
  const takes = input.kind === "sequences"
    ? `sequences of ${plural(input.dim, "value")} a step, up to ${input.max_steps.toLocaleString("en")} steps`
    : `${input.width} × ${input.height} pixels, ${input.color}; other sizes: ${input.resize}`;
  showKind(input.kind);
  const rows = [
    ["Input", takes],
    ["Clusters", String(model.k)],
    ["Trained on", [provenance.dataset, plural(model.clusters.reduce((sum, c) => sum + c.size, 0), one(model))].filter(Boolean).join(", ")],
    ["Method", [provenance.method, provenance.preset].filter(Boolean).join(", ")],
    ["Scores", scores],
    ["Seed", String(provenance.seed)],
    ["File", `${model.fingerprint.slice(0, 16)}… by ${provenance.tool_version}`],
  ];
  const list = el("dl");
  for (const [term, text] of rows) if (text) list.append(el("dt", {}, term), el("dd", {}, text));
  if (model.edits.length > 0) list.append(el("dt", {}, "Changes"), el("dd", {}, model.edits.join("; "), undoButton(model)));
  $("about-text").replaceChildren(list);
  $("about").hidden = false;
  draw();
}

/** Takes the last change of the clusters back, where that can be done here. */
function undoButton(model) {
  if (!model.editable) return null;
  const last = model.edits.at(-1);
  return el("button", { id: "undo", type: "button", onclick: () => change({ undo: true }, `Undone: ${last}.`) }, `Undo “${last}”`);
}

/** What one item of a model is called. */
const one = (model) => (model.input.kind === "sequences" ? "sequence" : "image");

/** The words of the page follow what the model takes. */
function showKind(kind) {
  const tables = kind === "sequences";
  document.body.dataset.kind = kind;
  const far = document.querySelector("#sort [value=unlike]");
  far.hidden = state.model?.outlier_threshold === undefined;
  if (far.hidden && $("sort").value === "unlike") $("sort").value = "sure";
  document.querySelector("#drop .first").textContent = tables ? "Drop tables to sort their sequences" : "Drop images to sort them";
  document.querySelector("#drop .again").textContent = tables ? "Add more tables" : "Add more images";
  document.querySelector("#drop p").textContent = tables
    ? "CSV files: a column of ids tells sequences apart; without one, a file is a sequence."
    : "A few or a few thousand, a folder or a zip. Or paste a picture from the clipboard.";
  $("choose").textContent = tables ? "Choose tables" : "Choose images";
  $("items").textContent = tables ? "Sequences" : "Images";
  $("files").accept = tables ? ".csv,.tsv,text/csv" : IMAGE_TYPES;
}

/** Images in the order in which the page shows them. */
function ordered() {
  const order = $("order").value;
  const byCluster = new Map();
  for (const image of state.images) {
    if (!image.result || image.result.error) continue;
    if (!byCluster.has(image.result.cluster)) byCluster.set(image.result.cluster, []);
    byCluster.get(image.result.cluster).push(image);
  }
  const clusters = [...byCluster.keys()].sort((a, b) =>
    order === "size" ? byCluster.get(b).length - byCluster.get(a).length || a - b : a - b);
  return clusters.flatMap((id) => sorted(byCluster.get(id), $("sort").value));
}

async function add(find) {
  const problems = [];
  const found = await find(problems);
  for (const problem of problems) note(problem, { bad: true });
  if (found.length === 0) {
    if (problems.length === 0) note(`There was no ${state.model ? one(state.model) : "image"} in that.`);
    return;
  }
  const images = found.map(({ name, file, picture }) => ({ name, file, url: URL.createObjectURL(picture ?? file), result: null }));
  state.images.push(...images);
  state.waiting.push(...images);
  document.body.classList.add("has-images");
  $("summary").hidden = false;
  draw();
  run();
}

/** Sends what waits, a few requests at a time, until nothing waits. */
async function run() {
  if (state.running || !state.model || state.waiting.length === 0) return;
  const running = { stop: new AbortController(), model: state.model };
  state.running = running;
  $("stop").hidden = false;
  draw();
  const worker = async () => {
    while (state.waiting.length > 0 && state.running === running) await send(takeRequest(state.waiting), running);
  };
  try {
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
  } catch (error) {
    running.stop.abort();
    if (state.running === running && error.code === service.MODEL_CHANGED) {
      startOver();
    } else if (state.running === running && error.name !== "AbortError") {
      state.waiting = state.images.filter((image) => !image.result);
      note(error.message, { bad: true, action: { label: "Try again", run } });
    }
  }
  if (state.running !== running) return;
  state.running = null;
  $("stop").hidden = true;
  draw();
}

/** Takes as many images from the front of a queue as a request may hold. */
function takeRequest(queue) {
  const most = Math.min(REQUEST_IMAGES, state.limits.max_images);
  // Multipart adds a few hundred bytes around each image.
  const mostBytes = Math.min(REQUEST_BYTES, state.limits.max_body - 1024 * most);
  let bytes = 0;
  let count = 0;
  while (count < most && count < queue.length) {
    bytes += queue[count].file.size;
    if (count > 0 && bytes > mostBytes) break;
    count += 1;
  }
  return queue.splice(0, count);
}

async function send(images, running) {
  let results;
  try {
    results = await service.assign(running.model, images.map((image) => image.file), running.stop.signal);
  } catch (error) {
    // Refused for what it holds, not for when it came: the images carry the reason.
    const theirs = [400, 413, 415, 422].includes(error.status);
    if (!theirs) throw error;
    results = images.map(() => ({ error: error.message, code: error.code }));
  }
  if (state.running !== running) return;
  images.forEach((image, index) => {
    image.result = results[index];
    image.top = null;
  });
  draw();
}

async function rename(cluster, name) {
  const model = state.model;
  try {
    const answer = await service.rename(model, cluster.id, name);
    cluster.name = answer.name;
    note(name ? `Cluster ${cluster.id} is now called “${answer.name}”.` : `Cluster ${cluster.id} has no name now.`);
  } catch (error) {
    if (error.code === service.MODEL_CHANGED) return startOver();
    note(error.message, { bad: true });
  }
  if (state.model === model) draw();
}

async function merge(cluster) {
  const other = await askMerge(cluster, state.model.clusters.filter(({ id }) => id !== cluster.id));
  if (other === null) return;
  const names = [cluster.name, state.model.clusters[other].name];
  await change({ merge: [cluster.id, other] }, `“${names.join("” and “")}” are one cluster now.`);
}

async function split(cluster, images) {
  const model = state.model;
  const most = Math.min(SPLIT_IMAGES, Math.floor(SPLIT_VALUES / model.embedding_size));
  const chosen = spread(images, most);
  if (!(await askSplit(cluster, chosen.length, one(model)))) return;
  let seen = () => {};
  try {
    const embeddings = [];
    const queue = [...chosen];
    while (queue.length > 0) {
      seen();
      seen = note(`Looked at ${embeddings.length} of ${plural(chosen.length, one(model))}.`);
      embeddings.push(...(await service.embeddings(model, takeRequest(queue).map((image) => image.file))));
    }
    seen();
    if (state.model !== model) return;
    await change({ split: { cluster: cluster.id, embeddings: embeddings.filter(Boolean) } }, `“${cluster.name}” is two clusters now.`);
  } catch (error) {
    if (error.code === service.MODEL_CHANGED) return startOver();
    note(error.message, { bad: true });
  }
}

/** At most so many of a list, evenly spread over it. */
function spread(list, most) {
  const count = Math.min(list.length, most);
  return Array.from({ length: count }, (_, place) => list[Math.floor((place * list.length) / count)]);
}

/** Changes the clusters in the model's file; everything is sorted again by what it is then. */
async function change(what, done) {
  try {
    await service.edit(state.model, what);
    startOver(done);
  } catch (error) {
    if (error.code === service.MODEL_CHANGED) return startOver();
    note(error.message, { bad: true });
  }
}

/** Draws once per frame, however many answers came. */
function draw() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    if (!state.model) return;
    $("known").hidden = state.images.length > 0;
    if (state.images.length === 0) {
      groups.drawModel(state.model);
      return;
    }
    groups.draw({ images: state.images, model: state.model, order: $("order").value, sort: $("sort").value });
    const done = state.images.filter((image) => image.result).length;
    const busy = state.running !== null;
    $("progress").hidden = !busy;
    $("progress").firstElementChild.style.setProperty("--done", percent(done / state.images.length).replace(" ", ""));
    $("progress").setAttribute("aria-valuenow", String(Math.round((100 * done) / state.images.length)));
    $("csv").disabled = done === 0;
    document.body.dataset.done = String(done);
  });
}

function stop() {
  state.running?.stop.abort();
  state.running = null;
  state.waiting = [];
  $("stop").hidden = true;
}

function clear() {
  stop();
  for (const image of state.images) URL.revokeObjectURL(image.url);
  state.images = [];
  groups.reset();
  $("summary").hidden = true;
  document.body.classList.remove("has-images");
  document.body.dataset.done = "0";
  draw();
  $("choose").focus();
}

function wire() {
  $("choose").addEventListener("click", () => $("files").click());
  $("files").addEventListener("change", () => {
    const files = [...$("files").files];
    $("files").value = "";
    add((problems) => fromFiles(files, problems, state.model?.input));
  });
  addEventListener("paste", (event) => {
    if (event.target instanceof HTMLInputElement || !event.clipboardData) return;
    if ([...event.clipboardData.items].some((item) => item.kind === "file")) {
      event.preventDefault();
      add((problems) => fromTransfer(event.clipboardData, problems, state.model?.input));
    }
  });
  const holdsFiles = (event) => event.dataTransfer?.types.includes("Files");
  addEventListener("dragover", (event) => {
    if (!holdsFiles(event)) return;
    event.preventDefault();
    $("veil").hidden = false;
  });
  addEventListener("dragleave", (event) => { if (!event.relatedTarget) $("veil").hidden = true; });
  addEventListener("drop", (event) => {
    if (!holdsFiles(event)) return;
    event.preventDefault();
    $("veil").hidden = true;
    add((problems) => fromTransfer(event.dataTransfer, problems, state.model?.input));
  });
  $("model").addEventListener("change", () => {
    stop();
    const before = state.model;
    useModel(state.models.find((model) => model.name === $("model").value));
    // What was dropped for one kind of model is nothing to the other.
    if (before.input.kind !== state.model.input.kind || before.input.dim !== state.model.input.dim) clear();
    history.replaceState(null, "", `#model=${encodeURIComponent(state.model.name)}`);
    forgetResults();
    run();
  });
  for (const id of ["order", "sort"]) $(id).addEventListener("change", draw);
  $("stop").addEventListener("click", () => { stop(); draw(); });
  $("clear").addEventListener("click", clear);
  $("csv").addEventListener("click", () => {
    download(csv(state.images, (id) => state.model.clusters[id].name), `${state.model.name}-clusters.csv`);
  });
  $("key").addEventListener("click", async () => { if (await service.changeKey()) loadModels(); });
}
