// The result as a table: the same columns as the service's own CSV.

// Text that a spreadsheet would take for a formula gets an apostrophe in front, as in the service's own CSV. Numbers are
// what they are.
const FORMULA = /^'* *[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;
const harmless = (value) => (typeof value === "string" && FORMULA.test(value) ? `'${value}` : value);

const quoted = (value) => {
  const text = String(harmless(value) ?? "");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

export function csv(images, clusterName) {
  const far = images.some((image) => image.result?.outlier !== undefined);
  const lines = [["name", "cluster", "cluster_name", "confidence", ...(far ? ["outlier"] : []), "code", "error"]];
  for (const image of images) {
    const { cluster, confidence, outlier, code, error } = image.result ?? {};
    const name = cluster === undefined ? "" : clusterName(cluster);
    lines.push([image.name, cluster, name, confidence, ...(far ? [outlier] : []), code, error]);
  }
  return lines.map((line) => line.map(quoted).join(",")).join("\r\n") + "\r\n";
}

export function download(text, name) {
  const url = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}
