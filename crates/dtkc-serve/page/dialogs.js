// One image in large with the probability of every cluster, and the questions for a key and for what to merge or split.

import { $, el, hue, percent, plural } from "./dom.js";
import { UNLIKE } from "./groups.js";

export class Viewer {
  /** `list()` gives the images in the order of the page, `probabilities(image, signal)` asks the service. */
  constructor({ list, probabilities, clusterName, isUnlike }) {
    this.list = list;
    this.probabilities = probabilities;
    this.clusterName = clusterName;
    this.isUnlike = isUnlike;
    this.dialog = $("viewer");
    this.image = null;
    $("viewer-close").addEventListener("click", () => this.dialog.close());
    $("viewer-previous").addEventListener("click", () => this.step(-1));
    $("viewer-next").addEventListener("click", () => this.step(1));
    this.dialog.addEventListener("click", (event) => { if (event.target === this.dialog) this.dialog.close(); });
    this.dialog.addEventListener("keydown", (event) => {
      if (event.key === "ArrowLeft") this.step(-1);
      if (event.key === "ArrowRight") this.step(1);
    });
    this.dialog.addEventListener("close", () => {
      this.asked?.abort();
      this.image?.parts?.button.focus();
    });
    $("viewer-image").addEventListener("load", (event) => {
      event.target.classList.toggle("pixels", event.target.naturalWidth <= 96);
      this.place();
    });
  }

  open(image) {
    this.image = image;
    $("viewer-name").textContent = image.name;
    $("viewer-image").src = image.url;
    $("viewer-image").alt = image.name;
    this.place();
    const list = this.list();
    const at = list.indexOf(image);
    $("viewer-previous").disabled = at <= 0;
    $("viewer-next").disabled = at < 0 || at === list.length - 1;
    if (!this.dialog.open) this.dialog.showModal();
    this.bars(image);
  }

  close() {
    if (this.dialog.open) this.dialog.close();
  }

  step(by) {
    const list = this.list();
    const next = list[list.indexOf(this.image) + by];
    if (next) this.open(next);
  }

  place() {
    if (!this.image?.result) return;
    const { naturalWidth: width, naturalHeight: height } = $("viewer-image");
    const size = width > 0 ? ` · ${width} × ${height} pixels` : "";
    $("viewer-place").textContent = `${this.clusterName(this.image.result.cluster)}, ${percent(this.image.result.confidence)} sure${this.isUnlike(this.image) ? `, ${UNLIKE}` : ""}${size}`;
  }

  async bars(image) {
    this.asked?.abort();
    this.asked = new AbortController();
    const known = [{ cluster: image.result.cluster, probability: image.result.confidence }];
    this.draw(image.top ?? known);
    if (image.top) return;
    try {
      image.top = await this.probabilities(image, this.asked.signal);
      if (this.image === image) this.draw(image.top);
    } catch (error) {
      if (error.name !== "AbortError") $("viewer-bars").append(el("li", {}, error.message));
    }
  }

  draw(top) {
    const bar = ({ cluster, probability }) => {
      const line = el("span.line", {}, el("span", {}, this.clusterName(cluster)), el("span", {}, percent(probability)));
      return el("li", { "--hue": hue(cluster), "--part": `${probability * 100}%` }, line);
    };
    $("viewer-bars").replaceChildren(...top.map(bar));
  }
}

/** Asks which of `others` a cluster should be merged with; null where none should. */
export function askMerge(cluster, others) {
  $("merge-title").textContent = `Merge “${cluster.name}” with`;
  $("merge-with").replaceChildren(...others.map(({ id, name }) => el("option", { value: String(id) }, name)));
  return asked("merge", "merge-with", Number);
}

/** Asks whether a cluster should be split by `count` items of it; null where not. `one` is what an item is called. */
export function askSplit(cluster, count, one) {
  $("split-title").textContent = `Split “${cluster.name}” in two`;
  $("split-by").textContent = plural(count, one);
  return asked("split", "split-ok", () => true);
}

/** Asks for a key; null where the user does not want to give one. */
export function askKey(reason) {
  $("ask-text").textContent = reason ?? "Ask whoever runs it. The key stays in this tab.";
  $("ask-key").value = "";
  return asked("ask", "ask-key", (key) => key.trim());
}

/** Shows a dialog with one field; gives what `read` makes of the field, or null where it was cancelled. */
function asked(name, field, read) {
  const dialog = $(name);
  dialog.returnValue = "cancel";
  dialog.showModal();
  $(field).focus();
  $(`${name}-cancel`).onclick = () => dialog.close("cancel");
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      resolve(dialog.returnValue === "ok" ? read($(field).value) : null);
    }, { once: true });
  });
}
