// Small helpers around the document. Elements are built, never parsed from text: what a file or a server says is
// shown as text and cannot become part of the page.

export const $ = (id) => document.getElementById(id);

/** Builds an element: el("button.main", {type: "button"}, "Save"). */
export function el(what, attributes = {}, ...children) {
  const [tag, ...classes] = what.split(".");
  const element = document.createElement(tag);
  element.className = classes.join(" ");
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.startsWith("--")) element.style.setProperty(name, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** A colour of its own for each cluster; neighbours differ clearly. */
export const hue = (cluster) => Math.round((230 + cluster * 137.508) % 360);

export const percent = (value) => {
  const hundred = value * 100;
  if (hundred >= 99.95) return "100 %";
  if (hundred < 0.05) return "0 %";
  return hundred >= 10 ? `${hundred.toFixed(0)} %` : `${hundred.toFixed(1)} %`;
};

export const plural = (count, one, many = `${one}s`) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;

/** Shows a note at the bottom; a bad one stays longer and can be closed. */
export function note(text, { bad = false, action } = {}) {
  const box = el(bad ? "div.note.bad" : "div.note", {}, text);
  const close = () => box.remove();
  if (action) {
    box.append(el("button", { type: "button", onclick: () => { close(); action.run(); } }, action.label));
  } else if (bad) {
    box.append(el("button", { type: "button", onclick: close }, "Close"));
  }
  const notes = $("notes");
  while (notes.children.length > 3) notes.firstElementChild.remove();
  notes.append(box);
  if (!action) setTimeout(close, bad ? 12000 : 4000);
  return close;
}
