// Tables as sequences, and sequences as pictures: the same rules as the service's, for what people drop here.

const IDS = /^(id|sequence|seq|series|sample|case|instance|item|trajectory)(id)?$/i;
const TIMES = /^(time|t|timestamp|step|timestep|date|datetime|frame|index)$/i;
const LABELS = /^(label|class|target|category|labels|classlabel|classes)$/i;
const COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#828282"];
const [WIDTH, HEIGHT, EDGE] = [160, 120, 8];
const MOST_POINTS = 2000;

export const isTable = (file) => /\.(csv|tsv|txt)$/i.test(file.name) || ["text/csv", "text/tab-separated-values"].includes(file.type);

const plain = (name) => name.replaceAll(/[^\p{L}\p{N}]/gu, "");
const isNumber = (field) => field === "" || field === "?" || field.toLowerCase() === "nan" || Number.isFinite(Number(field));
const number = (field) => (field === "" || field === "?" || !Number.isFinite(Number(field)) ? null : Number(field));

function fields(line, delimiter) {
  const parts = line.match(delimiter === "," ? /("([^"]|"")*"|[^,]*)(,|$)/g : new RegExp(`("([^"]|"")*"|[^${delimiter}]*)(${delimiter}|$)`, "g")) ?? [];
  const clean = (part) => part.replace(new RegExp(`${delimiter}$`), "").trim().replace(/^"(.*)"$/s, "$1").replaceAll('""', '"');
  const list = parts.map(clean);
  // The last match is empty unless the line ends with a delimiter.
  if (!line.endsWith(delimiter)) list.pop();
  return list;
}

/** The sequences of a table: `{name, values}`, values being lists of steps. `dim` decides what columns leave open. */
export function sequences(text, file, dim) {
  const lines = text.replace(/^\ufeff/, "").split(/\r?\n/).filter((line) => line.trim() !== "");
  if (lines.length === 0) throw new Error("the table is empty");
  const delimiter = ["\t", ";"].find((mark) => lines[0].includes(mark)) ?? ",";
  const rows = lines.map((line) => fields(line, delimiter));
  const header = rows[0].some((field) => !isNumber(field)) ? rows.shift() : null;
  const column = (kind) => header?.findIndex((name) => kind.test(plain(name))) ?? -1;
  const [id, time, label] = [IDS, TIMES, LABELS].map(column);
  const columns = (header ?? rows[0]).map((_, place) => place)
    .filter((place) => ![id, time, label].includes(place) && (!header || header[place] !== ""));
  if (id >= 0 || columns.length === dim || dim !== 1) {
    const found = new Map();
    for (const row of rows) {
      const name = id >= 0 ? row[id] : file;
      if (!found.has(name)) found.set(name, []);
      found.get(name).push({ at: time >= 0 ? row[time] : 0, step: columns.map((place) => number(row[place] ?? "")) });
    }
    return [...found].map(([name, steps]) => ({ name, values: inOrder(steps) }));
  }
  const steps = (row) => {
    const values = columns.map((place) => number(row[place] ?? ""));
    while (values.length > 0 && values.at(-1) === null) values.pop();
    return values.map((value) => [value]);
  };
  return rows.map((row, place) => ({ name: `${file}#${place}`, values: steps(row) }));
}

function inOrder(steps) {
  const times = steps.map(({ at }) => Number(at));
  const order = (a, b) => (times.some(Number.isNaN) ? String(a.at).localeCompare(String(b.at)) : Number(a.at) - Number(b.at));
  return [...steps].sort(order).map(({ step }) => step);
}

/** A picture: a pen's way for two values a step, otherwise a curve for each. */
export async function picture(values) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [WIDTH, HEIGHT];
  const context = canvas.getContext("2d");
  context.fillStyle = "#ffffff";
  context.fillRect(0, 0, WIDTH, HEIGHT);
  context.lineWidth = 1.4;
  const every = Math.max(1, Math.ceil(values.length / MOST_POINTS));
  const shown = values.filter((_, place) => place % every === 0);
  const dim = Math.max(1, ...shown.slice(0, 50).map((step) => step.length));
  if (dim === 2) draw(context, shown.map(([x, y]) => [x, y === null ? null : -y]), true, "#202124");
  else for (let place = 0; place < Math.min(dim, 32); place += 1) {
    draw(context, shown.map((step, at) => [at, step[place] === null || step[place] === undefined ? null : -step[place]]), false, COLORS[place % COLORS.length]);
  }
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

function draw(context, points, alike, color) {
  const there = points.filter(([x, y]) => Number.isFinite(x) && Number.isFinite(y) && x !== null && y !== null);
  if (there.length === 0) return;
  const range = (axis) => there.reduce(([low, high], point) => [Math.min(low, point[axis]), Math.max(high, point[axis])], [Infinity, -Infinity]);
  const [[left, right], [top, bottom]] = [range(0), range(1)];
  const room = (pixels, low, high) => (pixels - 2 * EDGE) / Math.max(high - low, 1e-30);
  let [across, down] = [room(WIDTH, left, right), room(HEIGHT, top, bottom)];
  if (alike) across = down = Math.min(across, down);
  const x = (value) => WIDTH / 2 + (value - (left + right) / 2) * across;
  const y = (value) => HEIGHT / 2 + (value - (top + bottom) / 2) * down;
  context.strokeStyle = color;
  context.beginPath();
  there.forEach(([px, py], place) => (place === 0 ? context.moveTo(x(px), y(py)) : context.lineTo(x(px), y(py))));
  if (there.length === 1) context.arc(x(there[0][0]), y(there[0][1]), 2, 0, 7);
  context.stroke();
}
