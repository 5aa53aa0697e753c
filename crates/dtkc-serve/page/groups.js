// The images grouped by cluster.

import { $, el, hue, percent, plural } from "./dom.js";

/** Pictures per cluster before "Show more". */
const SHOWN = 48;
/** Clusters named in a row; a model may have thousands. */
const MOST_CHIPS = 60;
/** A cluster is cut between two heaps of its images; with fewer there are none. */
const FEWEST_TO_SPLIT = 4;
/** What is said of an image that is farther from all others than its model's threshold. */
export const UNLIKE = "unlike anything in the training set";

export class Groups {
  /** `open(image)` shows one image, `rename(cluster, name)` saves a name, `merge(cluster)` asks with which other one,
   * `split(cluster, images)` cuts it by its images. */
  constructor({ open, rename, merge, split }) {
    this.open = open;
    this.merge = merge;
    this.split = split;
    this.rename = rename;
    this.shown = new Map();
    this.sections = new Map();
  }

  reset() {
    this.shown.clear();
    this.sections.clear();
    $("results").replaceChildren();
  }

  /** Draws everything anew; pictures that are already there are only moved. */
  draw({ images, model, order, sort }) {
    this.model = model;
    this.one = model.input.kind === "sequences" ? "sequence" : "image";
    const groups = new Map();
    const failed = [];
    for (const image of images) {
      if (!image.result) continue;
      if (image.result.error) failed.push(image);
      else if (groups.has(image.result.cluster)) groups.get(image.result.cluster).push(image);
      else groups.set(image.result.cluster, [image]);
    }
    const clusters = [...groups.keys()].sort((a, b) =>
      order === "size" ? groups.get(b).length - groups.get(a).length || a - b : a - b);
    const total = images.filter((image) => image.result && !image.result.error).length;
    const sections = clusters.map((id) => this.section(model.clusters[id], sorted(groups.get(id), sort), total));
    if (failed.length > 0) sections.push(failedSection(failed, this.one));
    const empty = model.clusters.filter((cluster) => !groups.has(cluster.id));
    if (total > 0 && empty.length > 0) sections.push(this.emptyClusters(empty));
    place($("results"), sections);
    drawSummary(images, clusters, groups, model);
  }

  section(cluster, images, total) {
    const cached = this.sections.get(cluster.id) ?? newSection(cluster, (title) => this.edit(cluster, title));
    this.sections.set(cluster.id, cached);
    const { section, name, count, detail, join, part, list, more } = cached;
    join.hidden = !this.model.editable || this.model.k < 3;
    join.setAttribute("aria-label", `Merge ${cluster.name} with another cluster`);
    join.onclick = () => this.merge(cluster);
    part.hidden = !this.model.editable || images.length < FEWEST_TO_SPLIT;
    part.setAttribute("aria-label", `Split ${cluster.name} in two`);
    part.onclick = () => this.split(cluster, images);
    if (name.textContent !== cluster.name) name.textContent = cluster.name;
    name.setAttribute("aria-label", `${cluster.name}, rename`);
    count.textContent = plural(images.length, this.one);
    const mean = images.reduce((sum, image) => sum + image.result.confidence, 0) / images.length;
    const trained = cluster.size > 0 ? `, ${percent(cluster.share)} in training` : "";
    detail.textContent = `${percent(images.length / total)} of yours${trained} · ${percent(mean)} sure on average`;
    const shown = this.shown.get(cluster.id) ?? SHOWN;
    place(list, images.slice(0, shown).map((image) => this.thumb(image)));
    const left = images.length - shown;
    const show = (count) => () => {
      this.shown.set(cluster.id, shown + count);
      this.section(cluster, images, total);
    };
    more.replaceChildren();
    more.hidden = left <= 0;
    if (left > 0) {
      more.append(el("button", { type: "button", onclick: show(SHOWN * 2) }, `Show ${Math.min(left, SHOWN * 2)} more`));
      if (left > SHOWN * 2) more.append(el("button", { type: "button", onclick: show(left) }, `Show all ${images.length}`));
    }
    return section;
  }

  thumb(image) {
    if (!image.element) {
      const picture = el("img", { src: image.url, alt: "", loading: "lazy", decoding: "async" });
      const sure = el("span.sure");
      const kind = image.name.split(".").pop().slice(0, 5);
      const button = el("button.thumb", { type: "button", "data-kind": kind, onclick: () => this.open(image) }, picture, sure);
      picture.addEventListener("load", () => picture.classList.toggle("pixels", picture.naturalWidth <= 96));
      // Formats that the service reads and the browser does not, such as TIFF.
      picture.addEventListener("error", () => button.classList.add("no-picture"));
      image.element = el("li", {}, button);
      image.parts = { button, sure };
    }
    const { cluster, confidence } = image.result;
    const { button, sure } = image.parts;
    const far = isUnlike(image, this.model);
    button.classList.toggle("unlike", far);
    button.style.setProperty("--hue", hue(cluster));
    button.style.setProperty("--sure", `${confidence * 100}%`);
    button.setAttribute("aria-label", `${image.name}, ${percent(confidence)} sure${far ? `, ${UNLIKE}` : ""}`);
    button.title = far ? `${image.name}: ${UNLIKE}` : image.name;
    sure.textContent = percent(confidence);
    return image.element;
  }

  /** What the page says of a model while there are no images yet. */
  drawModel(model) {
    const share = (cluster) => (cluster.size > 0 ? el("small", {}, percent(cluster.share)) : null);
    const trained = model.clusters.some((cluster) => cluster.size > 0) ? ", here with their shares in training" : "";
    const text = `${model.name} sorts ${model.input.kind} into ${plural(model.k, "cluster")}${trained}. Click one to name it.`;
    $("known").replaceChildren(el("p", {}, text), this.chips(model.clusters, share));
  }

  emptyClusters(clusters) {
    const row = this.chips(clusters);
    row.prepend(el("span", {}, `No ${this.one} in:`));
    return row;
  }

  chips(clusters, extra = () => null) {
    const chip = (cluster) => {
      const button = el("button.chip", { type: "button", "--hue": hue(cluster.id), title: "Rename" }, cluster.name, extra(cluster));
      button.addEventListener("click", () => this.edit(cluster, button));
      return button;
    };
    const row = el("div.chips", {}, ...clusters.slice(0, MOST_CHIPS).map(chip));
    if (clusters.length > MOST_CHIPS) row.append(el("span", {}, `and ${clusters.length - MOST_CHIPS} more`));
    return row;
  }

  /** Turns a cluster's title into a field. Enter saves, Escape leaves it. */
  edit(cluster, title) {
    const field = el("input.rename", { type: "text", maxlength: 100, "aria-label": `Name of ${cluster.name}`, spellcheck: "false" });
    field.value = cluster.name;
    let over = false;
    const end = async (save) => {
      if (over) return;
      over = true;
      const wanted = field.value.trim();
      field.replaceWith(title);
      title.focus();
      if (save && wanted !== cluster.name) await this.rename(cluster, wanted);
    };
    field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== "Escape") return;
      // The focus goes back to the title, and the same key must not press it again.
      event.preventDefault();
      end(event.key === "Enter");
    });
    field.addEventListener("blur", () => end(true));
    title.replaceWith(field);
    field.focus();
    field.select();
  }
}

function newSection(cluster, edit) {
  const name = el("button.name", { type: "button", title: "Rename" }, cluster.name);
  name.addEventListener("click", () => edit(name));
  const [count, detail, list, more] = [el("span.count"), el("span.detail"), el("ul.thumbs"), el("div.more", { hidden: true })];
  const join = el("button.quiet.join", { type: "button", hidden: true }, "Merge…");
  const part = el("button.quiet.part", { type: "button", hidden: true }, "Split…");
  const head = el("header", {}, el("span.dot"), el("h2", {}, name), count, detail, part, join);
  const section = el("section.cluster", { "--hue": hue(cluster.id), id: `cluster-${cluster.id}` }, head, list, more);
  return { section, name, count, detail, join, part, list, more };
}

function failedSection(images, one) {
  const line = (image) => el("li", {}, el("b", {}, image.name), " ", el("span", {}, image.result.error));
  const count = el("span.count", {}, plural(images.length, one));
  const head = el("header", {}, el("span.dot"), el("h2", {}, "Could not be used"), count);
  const list = el("ul", {}, ...images.slice(0, 200).map(line));
  if (images.length > 200) list.append(el("li", {}, `and ${images.length - 200} more; the CSV has all of them`));
  return el("section.cluster.failed", {}, head, list);
}

function drawSummary(images, clusters, groups, model) {
  const one = model.input.kind === "sequences" ? "sequence" : "image";
  const failed = images.filter((image) => image.result?.error).length;
  const assigned = images.filter((image) => image.result && !image.result.error);
  const figure = (value, text, kind = "div") => el(kind, {}, el("b", {}, value), el("span", {}, text));
  const figures = [
    figure(images.length.toLocaleString("en"), images.length === 1 ? one : model.input.kind),
    figure(`${clusters.length} of ${model.k}`, "clusters"),
  ];
  if (assigned.length > 0) {
    const mean = assigned.reduce((sum, image) => sum + image.result.confidence, 0) / assigned.length;
    figures.push(figure(percent(mean), "sure on average"));
  }
  const far = assigned.filter((image) => isUnlike(image, model)).length;
  if (far > 0) figures.push(figure(far.toLocaleString("en"), "unlike the training set", "div.far"));
  if (failed > 0) figures.push(figure(failed.toLocaleString("en"), "could not be used", "div.bad"));
  $("figures").replaceChildren(...figures);
  const part = (id) => {
    const count = groups.get(id).length;
    const show = () => $(`cluster-${id}`).scrollIntoView({ behavior: "smooth" });
    return el("i", { "--hue": hue(id), "--count": count, title: `${model.clusters[id].name}: ${plural(count, one)}`, onclick: show });
  };
  $("share").replaceChildren(...clusters.map(part));
  const text = clusters.map((id) => `${model.clusters[id].name}: ${groups.get(id).length}`).join(", ");
  $("share").setAttribute("aria-label", `Images per cluster: ${text}`);
}

/** Whether an image is farther from all training images than its model's threshold. */
export function isUnlike(image, model) {
  const { outlier } = image.result ?? {};
  return outlier !== undefined && model.outlier_threshold !== undefined && outlier > model.outlier_threshold;
}

export function sorted(images, sort) {
  if (sort === "added") return images;
  if (sort === "unlike") return [...images].sort((a, b) => (b.result.outlier ?? 0) - (a.result.outlier ?? 0));
  const sign = sort === "unsure" ? 1 : -1;
  return [...images].sort((a, b) => sign * (a.result.confidence - b.result.confidence));
}

/** Makes `children` the children, touching only what differs, so that focus and scrolling stay. */
function place(parent, children) {
  const keep = new Set(children);
  for (const child of [...parent.children]) if (!keep.has(child)) child.remove();
  children.forEach((child, index) => {
    if (parent.children[index] !== child) parent.insertBefore(child, parent.children[index] ?? null);
  });
}
