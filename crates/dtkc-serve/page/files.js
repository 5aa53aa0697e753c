// From what was dropped, pasted or chosen to a list of image files: folders are walked, zips are unpacked here, so
// that their pictures can be shown too.

import { isTable, picture, sequences } from "./sequences.js";

const IMAGE = /\.(png|jpe?g|jpe|jfif|gif|bmp|webp|tiff?|pnm|pbm|pgm|ppm|pam)$/i;
const ZIP = /\.zip$/i;
const MOST_FILES = 20000;
const MOST_UNPACKED = 1 << 30;

const looksLikeImage = (name, type) => IMAGE.test(name) || (type ?? "").startsWith("image/");

// The rules of the service for folders and zips: hidden files and the Mac's shadows are passed over, a file without
// extension is an image where its first bytes say so.
const isHidden = (part) => /^\.(?!\.?$)/.test(part) || part === "__MACOSX";
const hasExtension = (name) => /[^/]\.[^./]+$/.test(name);

function isImageHead(bytes) {
  const text = String.fromCharCode(...bytes.subarray(0, 64));
  const starts = ["\x89PNG\r\n\x1a\n", "\xff\xd8\xff", "GIF87a", "GIF89a", "II*\0", "MM\0*"];
  const webp = text.startsWith("RIFF") && text.slice(8, 12) === "WEBP";
  const bmp = text.startsWith("BM") && [12, 16, 40, 52, 56, 64, 108, 124].includes(bytes[14]) && text.slice(15, 18) === "\0\0\0";
  return webp || bmp || starts.some((start) => text.startsWith(start)) || /^(P[1-6](\s+[\d#]|#)|P7\r?\n)/.test(text);
}

/** The sequences of tables, each with its picture, for a model that takes `dim` values a step. */
async function fromTables(files, problems, dim) {
  const found = [];
  for (const file of files) {
    try {
      if (!isTable(file)) throw new Error("it is no table, and the model takes sequences; drop CSV files");
      const path = file.path ?? file.name;
      for (const { name, values } of sequences(await file.text(), path, dim)) {
        if (found.length === MOST_FILES) break;
        found.push({ name, file: new Blob([JSON.stringify(values)]), picture: await picture(values) });
      }
    } catch (error) {
      problems.push(`${file.name}: ${error.message}`);
    }
  }
  return found;
}

/** The images of a drop or a paste; `problems` collects sentences about what could not be read. */
export async function fromTransfer(transfer, problems, input) {
  // Entries must be taken before the first await: the browser empties the list afterwards.
  const items = [...(transfer.items ?? [])].filter((item) => item.kind === "file");
  const entries = items.map((item) => item.webkitGetAsEntry?.() ?? null);
  const plain = items.map((item) => item.getAsFile());
  const files = [];
  if (items.length === 0) files.push(...transfer.files);
  for (let i = 0; i < items.length; i += 1) {
    if (entries[i]?.isDirectory) await walk(entries[i], "", files);
    else if (plain[i]) files.push(plain[i]);
  }
  return fromFiles(files, problems, input);
}

/** The images among files, zips unpacked; or what tables hold, where the model's `input` is sequences. */
export async function fromFiles(files, problems, input) {
  if (input?.kind === "sequences") return fromTables(files, problems, input.dim);
  const images = [];
  let others = 0;
  for (const file of files) {
    if (ZIP.test(file.name) || file.type === "application/zip") {
      try {
        const opened = await unzip(file);
        images.push(...opened.images);
        others += opened.others;
      } catch (error) {
        problems.push(`${file.name}: ${error.message}`);
      }
    } else if (file.isImage || looksLikeImage(file.name, file.type)) {
      images.push({ name: file.path ?? file.name, file });
    } else {
      others += 1;
    }
  }
  if (others > 0) problems.push(others === 1 ? "One file is no image and was left out." : `${others} files are no images and were left out.`);
  if (images.length > MOST_FILES) {
    problems.push(`Only the first ${MOST_FILES.toLocaleString("en")} images were taken.`);
    images.length = MOST_FILES;
  }
  return images;
}

async function walk(folder, path, files) {
  const reader = folder.createReader();
  const read = () => new Promise((resolve, reject) => reader.readEntries(resolve, reject));
  for (let some = await read(); some.length > 0 && files.length < MOST_FILES; some = await read()) {
    for (const entry of some) {
      if (isHidden(entry.name)) continue;
      const inner = `${path}${folder.name}/`;
      if (entry.isDirectory) {
        await walk(entry, inner, files);
      } else {
        const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
        file.path = inner + file.name;
        file.isImage = !hasExtension(file.name) && isImageHead(new Uint8Array(await file.slice(0, 64).arrayBuffer()));
        files.push(file);
      }
    }
  }
}

/** Reads a zip: its directory is at the end, each file is stored as it is or deflated. */
async function unzip(file) {
  if (typeof DecompressionStream === "undefined") throw new Error("this browser cannot open zips; drop the images themselves");
  const bytes = new Uint8Array(await file.arrayBuffer());
  const images = [];
  let unpacked = 0;
  let others = 0;
  for (const entry of directory(bytes)) {
    if (entry.name.endsWith("/") || entry.name.split("/").some(isHidden)) continue;
    if (hasExtension(entry.name) && !looksLikeImage(entry.name)) {
      others += 1;
      continue;
    }
    unpacked += entry.size;
    if (unpacked > MOST_UNPACKED) throw new Error("it unpacks to more than 1 GiB; drop the images in parts");
    if (images.length === MOST_FILES) break;
    const content = await content_of(bytes, entry);
    if (!hasExtension(entry.name) && !isImageHead(new Uint8Array(await new Blob([content]).slice(0, 64).arrayBuffer()))) {
      others += 1;
      continue;
    }
    images.push({ name: entry.name, file: new File([content], entry.name.split("/").pop()) });
  }
  if (images.length === 0) throw new Error("there is no image in this zip");
  return { images, others };
}

function* directory(bytes) {
  const view = new DataView(bytes.buffer);
  const broken = new Error("this is not a zip that can be read");
  let end = bytes.length - 22;
  while (end >= 0 && end > bytes.length - 22 - 65536 && view.getUint32(end, true) !== 0x06054b50) end -= 1;
  if (end < 0 || view.getUint32(end, true) !== 0x06054b50) throw broken;
  const count = view.getUint16(end + 10, true);
  let at = view.getUint32(end + 16, true);
  for (let i = 0; i < count; i += 1) {
    if (at + 46 > bytes.length || view.getUint32(at, true) !== 0x02014b50) throw broken;
    const [nameLength, extra, comment] = [28, 30, 32].map((offset) => view.getUint16(at + offset, true));
    yield {
      name: new TextDecoder().decode(bytes.subarray(at + 46, at + 46 + nameLength)),
      method: view.getUint16(at + 10, true),
      packed: view.getUint32(at + 20, true),
      size: view.getUint32(at + 24, true),
      header: view.getUint32(at + 42, true),
    };
    at += 46 + nameLength + extra + comment;
  }
}

async function content_of(bytes, entry) {
  const view = new DataView(bytes.buffer);
  if (entry.header + 30 > bytes.length) throw new Error(`${entry.name} is cut off`);
  const start = entry.header + 30 + view.getUint16(entry.header + 26, true) + view.getUint16(entry.header + 28, true);
  const packed = bytes.subarray(start, start + entry.packed);
  if (entry.method === 0) return packed;
  if (entry.method !== 8) throw new Error(`${entry.name} is packed in a way that browsers cannot open`);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  const parts = [];
  let size = 0;
  for (let reader = stream.getReader(), part = await reader.read(); !part.done; part = await reader.read()) {
    size += part.value.length;
    // A size that lies must not fill the memory.
    if (size > entry.size) throw new Error(`${entry.name} is larger than it says`);
    parts.push(part.value);
  }
  return new Blob(parts);
}
