"use strict";
// The map: points on a canvas, pictures from sheets that are opened when they are needed.
(() => {
  const canvas = document.getElementById("map-canvas");
  if (!canvas) return;
  const $ = (id) => document.getElementById(id);
  const facts = JSON.parse($("map-facts").textContent);
  const bytes = (name) => {
    const element = $("map-" + name);
    if (!element) return null;
    const text = atob(element.textContent);
    const out = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) out[i] = text.charCodeAt(i);
    return out;
  };
  const words = (name) => { const b = bytes(name); return b && new Uint16Array(b.buffer); };
  const items = new Uint32Array(bytes("items").buffer), n = items.length;
  const layouts = { near: words("near"), axes: words("axes") };
  const clusters = words("clusters"), seconds = words("seconds"), labels = words("labels");
  const confidence = bytes("confidence"), consensus = bytes("consensus");
  const names = (() => {
    if (!facts.names) return null;
    const out = [];
    let name = "";
    for (let i = 0; i < facts.names.length; i += 2) out.push(name = name.slice(0, facts.names[i]) + facts.names[i + 1]);
    return out;
  })();
  const context = canvas.getContext("2d");
  const tip = $("map-tip"), said = $("map-said");
  const state = { place: $("map-place").value, colour: "cluster", only: -1, point: -1, chosen: new Set(), lasso: null, view: null };
  const percent = (value) => value === 255 ? "not known" : (value === 254 ? "100" : Math.min(99.9, value / 2.54).toFixed(1)) + " %";

  // Colours: one list for each way to colour, and for every point its place in it.
  const ramp = ["#440154", "#46327e", "#365c8d", "#277f8e", "#1fa187", "#4ac16d", "#a0da39", "#fde725"];
  const hue = (i, count) => count <= facts.colors.length ? facts.colors[i] : `hsl(${(i * 137.508 % 360).toFixed(0)} 62% ${[50, 62, 40][i % 3]}%)`;
  const ways = {
    cluster: () => ({ colors: facts.colors, of: clusters, title: (i) => String(i) }),
    label: () => ({
      colors: facts.labels.map((_, i) => hue(i, facts.labels.length)).concat("#8888"),
      of: labels.map((l) => Math.min(l, facts.labels.length)), title: (i) => facts.labels[i] ?? "no label",
    }),
    confidence: () => ({ colors: ramp, of: confidence.map((c) => Math.min(7, c * 8 / 255 | 0)), ends: ["unsure", "certain"] }),
    consensus: () => ({ colors: ramp.concat("#8884"), of: consensus.map((c) => c === 255 ? 8 : Math.min(7, c * 8 / 255 | 0)), ends: ["no other restart agrees", "all agree"] }),
  };
  let way, order, starts;
  const colour = () => {
    way = ways[state.colour]();
    // Points by colour, so that a colour is set once for all of them.
    starts = new Uint32Array(way.colors.length + 1);
    for (let i = 0; i < n; i++) starts[way.of[i] + 1]++;
    for (let c = 0; c < way.colors.length; c++) starts[c + 1] += starts[c];
    const next = starts.slice();
    order = new Uint32Array(n);
    for (let i = 0; i < n; i++) order[next[way.of[i]]++] = i;
  };

  // Points by cell, for the one under the pointer.
  const CELLS = 128;
  let cells, inCells;
  const sort = () => {
    const xy = layouts[state.place];
    const cell = (i) => (xy[2 * i + 1] * CELLS >> 16) * CELLS + (xy[2 * i] * CELLS >> 16);
    cells = new Uint32Array(CELLS * CELLS + 1);
    for (let i = 0; i < n; i++) cells[cell(i) + 1]++;
    for (let c = 0; c < CELLS * CELLS; c++) cells[c + 1] += cells[c];
    const next = cells.slice();
    inCells = new Uint32Array(n);
    for (let i = 0; i < n; i++) inCells[next[cell(i)]++] = i;
  };

  // The view: so many pixels for a step of the map, and where its corner lies.
  const fit = () => {
    const width = canvas.clientWidth, height = canvas.clientHeight, edge = 24;
    const scale = Math.max(1, Math.min(width, height) - 2 * edge) / 65535;
    return { scale, x: (width - 65535 * scale) / 2, y: (height - 65535 * scale) / 2 };
  };
  const screen = (i) => {
    const xy = layouts[state.place], v = state.view;
    return [xy[2 * i] * v.scale + v.x, (65535 - xy[2 * i + 1]) * v.scale + v.y];
  };
  const size = () => Math.min(9, Math.max(1.6, 4.6 * Math.pow(3000 / Math.max(n, 300), 0.3)) * Math.pow(state.view.scale / fit().scale, 0.4));

  let asked = false;
  const draw = () => { if (!asked) { asked = true; requestAnimationFrame(paint); } };
  const paint = () => {
    asked = false;
    const density = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
    if (width === 0) return;
    if (canvas.width !== Math.round(width * density) || canvas.height !== Math.round(height * density)) {
      canvas.width = Math.round(width * density);
      canvas.height = Math.round(height * density);
    }
    context.setTransform(density, 0, 0, density, 0, 0);
    context.clearRect(0, 0, width, height);
    const style = getComputedStyle(canvas), ink = style.color, xy = layouts[state.place], v = state.view, r = size(), half = r / 2;
    const round = n <= 4000;
    const dots = (from, to, color, alpha) => {
      context.fillStyle = color;
      context.globalAlpha = alpha;
      for (let at = from; at < to; at++) {
        const i = order[at], x = xy[2 * i] * v.scale + v.x, y = (65535 - xy[2 * i + 1]) * v.scale + v.y;
        if (x < -r || y < -r || x > width + r || y > height + r) continue;
        if (round) { context.beginPath(); context.arc(x, y, half, 0, 7); context.fill(); } else context.fillRect(x - half, y - half, r, r);
      }
    };
    const solid = n > 4000 ? 0.85 : 0.9;
    for (let c = 0; c < way.colors.length; c++) if (c !== state.only) dots(starts[c], starts[c + 1], way.colors[c], state.only >= 0 ? 0.12 : solid);
    if (state.only >= 0) dots(starts[state.only], starts[state.only + 1], way.colors[state.only], 1);
    context.globalAlpha = 1;
    if (state.chosen.size) {
      context.fillStyle = ink;
      for (const i of state.chosen) { const [x, y] = screen(i); context.fillRect(x - half / 2, y - half / 2, half, half); }
    }
    if (state.point >= 0) {
      const [x, y] = screen(state.point);
      context.strokeStyle = ink; context.lineWidth = 2;
      context.beginPath(); context.arc(x, y, r + 3, 0, 7); context.stroke();
    }
    if (state.lasso) {
      context.strokeStyle = ink; context.lineWidth = 1.5; context.setLineDash([5, 4]);
      context.beginPath();
      state.lasso.forEach(([x, y], at) => at ? context.lineTo(x, y) : context.moveTo(x, y));
      context.closePath(); context.stroke(); context.setLineDash([]);
    }
  };

  // Pictures. The last sheets stay open.
  const sheets = new Map();
  const sheet = (at) => {
    let found = sheets.get(at);
    if (found) sheets.delete(at);
    else {
      const image = new Image();
      image.src = "data:image/jpeg;base64," + $("sheet-" + at).textContent;
      found = image.decode().then(() => image);
      if (sheets.size > 16) sheets.delete(sheets.keys().next().value);
    }
    sheets.set(at, found);
    return found;
  };
  const picture = async (i, to) => {
    const t = facts.tiles;
    if (!t) return;
    const image = await sheet(Math.floor(i / t.per_sheet));
    const at = i % t.per_sheet;
    to.width = t.width; to.height = t.height;
    to.getContext("2d").drawImage(image, at % t.across * t.step[0], Math.floor(at / t.across) * t.step[1], t.width, t.height, 0, 0, t.width, t.height);
  };
  const title = (i) => names?.[i] || `${facts.one} ${items[i]}`;
  const about = (i) => {
    const lines = [title(i), `cluster ${clusters[i]}, ${percent(confidence[i])}`];
    if (seconds[i] !== 65535) lines.push(`second: cluster ${seconds[i]}`);
    if (labels && labels[i] !== 65535) lines.push(`label: ${facts.labels[labels[i]]}`);
    if (consensus && consensus[i] !== 255) lines.push(`restarts that agree: ${percent(consensus[i])}`);
    return lines.join("\n");
  };
  const show = (i) => {
    if (i === state.point) return;
    state.point = i;
    tip.hidden = i < 0;
    canvas.dataset.point = i < 0 ? "" : String(items[i]);
    draw();
    if (i < 0) return;
    const [x, y] = screen(i);
    tip.querySelector("p").textContent = about(i);
    said.textContent = about(i).replaceAll("\n", ", ");
    const small = tip.querySelector("canvas");
    small.hidden = !facts.tiles;
    const fresh = document.createElement("canvas");
    picture(i, fresh).then(() => { if (state.point === i) { small.replaceWith(fresh); fresh.dataset.item = String(items[i]); } });
    const left = x + 164 > canvas.clientWidth ? x - 164 : x + 14;
    tip.style.left = Math.max(0, Math.min(canvas.clientWidth - 148, left)) + "px";
    tip.style.top = Math.max(0, Math.min(canvas.clientHeight - tip.offsetHeight, y - 60)) + "px";
  };
  const nearest = (x, y, reach) => {
    const xy = layouts[state.place], v = state.view, limit = reach / v.scale;
    const px = (x - v.x) / v.scale, py = 65535 - (y - v.y) / v.scale;
    const cell = (value) => Math.max(0, Math.min(CELLS - 1, Math.floor(value * CELLS / 65536)));
    let best = -1, least = limit * limit;
    for (let row = cell(py - limit); row <= cell(py + limit); row++) {
      for (let at = cells[row * CELLS + cell(px - limit)]; at < cells[row * CELLS + cell(px + limit) + 1]; at++) {
        const i = inCells[at], dx = xy[2 * i] - px, dy = xy[2 * i + 1] - py, square = dx * dx + dy * dy;
        if (square < least && (state.only < 0 || way.of[i] === state.only)) { least = square; best = i; }
      }
    }
    return best;
  };
  const zoom = (by, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) => {
    const v = state.view, whole = fit().scale;
    const scale = Math.min(whole * 60, Math.max(whole * 0.8, v.scale * by)), factor = scale / v.scale;
    state.view = { scale, x: x - (x - v.x) * factor, y: y - (y - v.y) * factor };
    show(-1);
    draw();
  };

  // What was drawn around, as a list.
  const inside = (polygon, x, y) => {
    let odd = false;
    for (let a = 0, b = polygon.length - 1; a < polygon.length; b = a++) {
      const [ax, ay] = polygon[a], [bx, by] = polygon[b];
      if ((ay > y) !== (by > y) && x < (bx - ax) * (y - ay) / (by - ay) + ax) odd = !odd;
    }
    return odd;
  };
  const list = () => {
    const box = $("map-chosen"), chosen = [...state.chosen].sort((a, b) => a - b);
    box.hidden = chosen.length === 0;
    box.dataset.count = String(chosen.length);
    const counts = new Map();
    for (const i of chosen) counts.set(clusters[i], (counts.get(clusters[i]) || 0) + 1);
    const parts = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 6).map(([c, count]) => `${count} in cluster ${c}`);
    box.querySelector("p").textContent = `${chosen.length.toLocaleString("en")} selected: ` + parts.join(", ") + (counts.size > 6 ? " and others" : "");
    said.textContent = box.querySelector("p").textContent;
    const every = Math.max(1, chosen.length / 48);
    const shown = [];
    for (let at = 0; at < chosen.length && shown.length < 48; at += every) shown.push(chosen[Math.floor(at)]);
    box.querySelector("ul").replaceChildren(...(facts.tiles ? shown : []).map((i) => {
      const item = document.createElement("li"), small = document.createElement("canvas");
      item.title = about(i);
      small.className = facts.tiles.width <= 64 ? "tiny" : "";
      item.append(small);
      picture(i, small);
      return item;
    }));
    draw();
  };
  // A cell must not be taken for a formula by a spreadsheet.
  const cell = (text) => {
    const safe = /^'*\s*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/.test(text) ? "'" + text : text;
    return /[",\r\n]/.test(safe) ? '"' + safe.replaceAll('"', '""') + '"' : safe;
  };
  const csv = () => {
    const head = ["index", ...(names ? ["path"] : []), "cluster", "confidence", "second", ...(labels ? ["label"] : [])];
    const row = (i) => [items[i], ...(names ? [cell(names[i])] : []), clusters[i], (Math.min(confidence[i], 254) / 254).toFixed(3),
      seconds[i] === 65535 ? "" : seconds[i], ...(labels ? [labels[i] === 65535 ? "" : cell(facts.labels[labels[i]])] : [])];
    return [head, ...[...state.chosen].sort((a, b) => a - b).map(row)].map((line) => line.join(",")).join("\n") + "\n";
  };
  $("map-save").addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([csv()], { type: "text/csv" }));
    link.download = "selection.csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  });
  const clear = () => { state.chosen.clear(); list(); };
  $("map-clear").addEventListener("click", clear);

  const legend = () => {
    const box = $("map-legend");
    state.only = -1;
    if (way.ends) {
      const bar = document.createElement("span");
      bar.className = "ramp";
      const stripe = document.createElement("i");
      stripe.style.background = `linear-gradient(90deg, ${ramp.join(", ")})`;
      bar.append(way.ends[0], stripe, way.ends[1]);
      box.replaceChildren(bar);
      return;
    }
    box.replaceChildren(...way.colors.map((color, at) => {
      const chip = document.createElement("button");
      chip.type = "button";
      chip.className = "chip";
      chip.style.setProperty("--c", color);
      chip.textContent = way.title(at);
      chip.hidden = starts[at] === starts[at + 1];
      chip.title = `${starts[at + 1] - starts[at]} ${facts.kind}; click to see only these`;
      chip.setAttribute("aria-pressed", "false");
      chip.addEventListener("click", () => {
        state.only = state.only === at ? -1 : at;
        for (const [other, button] of [...box.children].entries()) button.setAttribute("aria-pressed", String(other === state.only));
        draw();
      });
      return chip;
    }));
  };
  $("map-place").addEventListener("change", (event) => { state.place = event.target.value; sort(); show(-1); draw(); });
  $("map-colour").addEventListener("change", (event) => { state.colour = event.target.value; colour(); legend(); draw(); });
  const lasso = $("map-lasso");
  const setLasso = (on) => { lasso.setAttribute("aria-pressed", String(on)); canvas.classList.toggle("lasso", on); };
  const isLasso = () => lasso.getAttribute("aria-pressed") === "true";
  lasso.addEventListener("click", () => setLasso(!isLasso()));
  $("map-in").addEventListener("click", () => zoom(1.6));
  $("map-out").addEventListener("click", () => zoom(1 / 1.6));
  $("map-whole").addEventListener("click", () => { state.view = fit(); show(-1); draw(); });

  let held = null;
  const where = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const [x, y] = where(event);
    held = { x, y, view: state.view };
    try { canvas.setPointerCapture(event.pointerId); } catch { /* a pointer that has gone already */ }
    if (isLasso() || event.shiftKey) { state.lasso = [[x, y]]; show(-1); }
  });
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = where(event);
    if (state.lasso) { state.lasso.push([x, y]); draw(); return; }
    if (held && Math.hypot(x - held.x, y - held.y) > 4) {
      state.view = { ...held.view, x: held.view.x + x - held.x, y: held.view.y + y - held.y };
      show(-1);
      draw();
      return;
    }
    show(nearest(x, y, 14));
  });
  const release = (event) => {
    if (state.lasso) {
      if (!event.shiftKey) state.chosen.clear();
      for (let i = 0; i < n; i++) {
        if (state.only >= 0 && way.of[i] !== state.only) continue;
        const [x, y] = screen(i);
        if (inside(state.lasso, x, y)) state.chosen.add(i);
      }
      state.lasso = null;
      list();
    } else if (event.pointerType === "touch") show(nearest(...where(event), 24));
    held = null;
    draw();
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", () => { held = null; state.lasso = null; draw(); });
  canvas.addEventListener("pointerleave", () => { if (!held) show(-1); });
  canvas.addEventListener("wheel", (event) => {
    // The page scrolls as ever until somebody works with the map.
    if (!event.ctrlKey && document.activeElement !== canvas) return;
    event.preventDefault();
    zoom(Math.exp(-event.deltaY / 400), ...where(event));
  }, { passive: false });

  // From point to point with the arrow keys: the nearest one in that direction.
  const step = (dx, dy) => {
    if (state.point < 0) return show(nearest(canvas.clientWidth / 2, canvas.clientHeight / 2, 1e5));
    const [x, y] = screen(state.point);
    let best = -1, least = Infinity;
    for (let i = 0; i < n; i++) {
      if (state.only >= 0 && way.of[i] !== state.only) continue;
      const [px, py] = screen(i), along = (px - x) * dx + (py - y) * dy, aside = Math.abs((px - x) * dy) + Math.abs((py - y) * dx);
      if (along <= 0.5 || aside > along) continue;
      const cost = along + 2 * aside;
      if (cost < least) { least = cost; best = i; }
    }
    if (best >= 0) show(best);
  };
  canvas.addEventListener("keydown", (event) => {
    const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (arrows[event.key]) step(...arrows[event.key]);
    else if (event.key === "+" || event.key === "=") zoom(1.6);
    else if (event.key === "-") zoom(1 / 1.6);
    else if (event.key === "0") { state.view = fit(); draw(); }
    else if (event.key === "l" || event.key === "L") setLasso(!isLasso());
    else if (event.key === "Escape") { setLasso(false); state.lasso = null; show(-1); clear(); }
    else if ((event.key === "Enter" || event.key === " ") && state.point >= 0) {
      if (!state.chosen.delete(state.point)) state.chosen.add(state.point);
      list();
    } else return;
    event.preventDefault();
  });

  // Where an item is on the screen, for tests and for whoever is curious.
  canvas.where = (i) => { const box = canvas.getBoundingClientRect(), [x, y] = screen(i); return [box.left + x, box.top + y]; };
  colour();
  sort();
  legend();
  state.view = fit();
  paint();
  let seen = canvas.clientWidth + "x" + canvas.clientHeight;
  new ResizeObserver(() => {
    const now = canvas.clientWidth + "x" + canvas.clientHeight;
    if (now === seen) return;
    seen = now;
    state.view = fit();
    draw();
  }).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  addEventListener("beforeprint", () => { document.documentElement.classList.add("printing"); paint(); });
  addEventListener("afterprint", () => { document.documentElement.classList.remove("printing"); paint(); });
})();
