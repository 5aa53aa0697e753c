// Talking to the service: the key, waiting when it is busy, and its errors as sentences.

let key = sessionStorage.getItem("dtkc-key") ?? "";
let askForKey = async () => null;

/** `ask` shows a dialog and gives the key that was typed, or null. */
export function setKeyDialog(ask) {
  askForKey = ask;
}

/** Asks for another key, also where none was demanded. */
export async function changeKey(reason) {
  const typed = await askForKey(reason);
  if (typed === null) return false;
  key = typed;
  if (key) sessionStorage.setItem("dtkc-key", key);
  else sessionStorage.removeItem("dtkc-key");
  return true;
}

export class ServiceError extends Error {
  constructor(message, code, status) {
    super(message);
    this.code = code;
    this.status = status;
  }
}

/** The code of an answer that belongs to another model file than the page knows. */
export const MODEL_CHANGED = "model_changed";

/** One question at a time, however many requests were refused. */
let asking = null;

async function call(path, options = {}) {
  for (let attempt = 0; ; attempt += 1) {
    const used = key;
    const headers = { accept: "application/json", ...options.headers };
    if (used) headers["x-api-key"] = used;
    let response;
    try {
      response = await fetch(path, { ...options, headers });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new ServiceError("The service cannot be reached. Is it still running?", "unreachable", 0);
    }
    if (response.ok) return { ...(await response.json()), ...madeBy(response) };
    const body = await response.json().catch(() => ({}));
    const busy = response.status === 429 || response.status === 503;
    if (busy && attempt < 60) {
      await pause(Math.min(Number(response.headers.get("retry-after")) || 1, 10), options.signal);
      continue;
    }
    if (response.status === 401) {
      asking ??= changeKey(used ? body.error : undefined).finally(() => { asking = null; });
      if (used !== key || (await asking)) continue;
    }
    throw new ServiceError(body.error ?? `The service answered ${response.status}.`, body.code, response.status);
  }
}

/** The model file that an answer comes from, where the answer says so. */
function madeBy(response) {
  const fingerprint = response.headers.get("x-model-fingerprint");
  return fingerprint ? { fingerprint } : {};
}

/** Answers of another model file than the page knows would be mixed with those of the old one. */
function fromModel(model, answer) {
  if (answer.fingerprint === model.fingerprint) return answer;
  throw new ServiceError("The model was replaced by another one.", MODEL_CHANGED, 0);
}

function pause(seconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, seconds * 1000);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(new DOMException("stopped", "AbortError"));
    }, { once: true });
  });
}

const modelPath = (model) => `v1/models/${encodeURIComponent(model)}`;

export const models = () => call("v1/models");

export async function assign(model, files, signal) {
  const answer = await call(`${modelPath(model.name)}/assign`, { method: "POST", ...(await content(model, files)), signal });
  return fromModel(model, answer)[model.input.kind];
}

/** What the model makes of each file, in numbers; null where it could not. */
export async function embeddings(model, files, signal) {
  const path = `${modelPath(model.name)}/assign?embedding=true`;
  const answer = await call(path, { method: "POST", ...(await content(model, files)), signal });
  return fromModel(model, answer)[model.input.kind].map((item) => item.embedding ?? null);
}

export async function probabilities(model, file, signal) {
  const path = `${modelPath(model.name)}/assign?top_k=${model.k}`;
  const answer = await call(path, { method: "POST", ...(await content(model, [file])), signal });
  return fromModel(model, answer)[model.input.kind][0].top ?? [];
}

/** Images go as files of a form; of a sequence the file is its steps in JSON. */
async function content(model, files) {
  if (model.input.kind === "sequences") {
    const steps = await Promise.all(files.map((file) => file.text()));
    return { headers: { "content-type": "application/json" }, body: `{"sequences":[${steps.join(",")}]}` };
  }
  const form = new FormData();
  files.forEach((file, index) => form.append("image", file, String(index)));
  return { body: form };
}

/** `change` is `{ merge: [id, id] }`, `{ split: { cluster: id, embeddings } }` or `{ undo: true }`. */
export const edit = (model, change) =>
  call(`${modelPath(model.name)}/edits`, { method: "POST", headers: forModel(model), body: JSON.stringify(change) });

/** Only for the clusters that the page shows: those of another file mean something else. */
const forModel = (model) => ({ "content-type": "application/json", "if-match": `"${model.fingerprint}"` });

export const rename = (model, cluster, name) =>
  call(`${modelPath(model.name)}/clusters/${cluster}`, {
    method: "PUT",
    headers: forModel(model),
    body: JSON.stringify({ name }),
  });
