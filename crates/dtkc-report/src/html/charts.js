"use strict";
// Curves: which restart lies in front, and the values under the pointer.
(() => {
  const data = JSON.parse(document.getElementById("charts").textContent);
  const figures = [...document.querySelectorAll(".chart")];
  const buttons = [...document.querySelectorAll("button[data-restart]")];
  const front = () => buttons.find((b) => b.getAttribute("aria-pressed") === "true")?.dataset.restart;
  for (const button of buttons) {
    button.addEventListener("click", () => {
      for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
      for (const line of document.querySelectorAll(".chart .line")) {
        const own = line.dataset.restart === button.dataset.restart;
        line.classList.toggle("front", own);
        if (own) line.parentNode.insertBefore(line, line.parentNode.querySelector(".cursor"));
      }
    });
  }
  const short = (value) => Number(value.toPrecision(4)).toString();
  // The value of a line at the epoch nearest to the one that is asked for.
  const at = (points, epoch) => points.reduce((a, b) => (Math.abs(b[0] - epoch) < Math.abs(a[0] - epoch) ? b : a));
  for (const figure of figures) {
    const svg = figure.querySelector("svg");
    if (!svg) continue;
    const lines = data[Number(figure.dataset.chart)];
    const read = figure.querySelector(".read"), cursor = svg.querySelector(".cursor");
    const first = Number(svg.dataset.first), last = Number(svg.dataset.last), left = 50, right = 350;
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const x = (event.clientX - box.left) / box.width * 360;
      const epoch = Math.round(first + Math.min(1, Math.max(0, (x - left) / (right - left))) * (last - first));
      const place = left + (epoch - first) / (last - first) * (right - left);
      cursor.setAttribute("transform", `translate(${place} 0)`);
      cursor.style.visibility = "visible";
      const inFront = front();
      const sorted = [...lines].filter((l) => l[1].length).sort((a, b) => (String(b[0]) === inFront) - (String(a[0]) === inFront));
      const values = sorted.slice(0, 4).map(([restart, points]) => {
        const found = at(points, epoch);
        return (lines.length > 1 ? `restart ${restart}: ` : "") + short(found[1]) + (found[0] === epoch ? "" : ` (epoch ${found[0]})`);
      });
      read.textContent = `epoch ${epoch} · ` + values.join(" · ");
    });
    svg.addEventListener("pointerleave", () => {
      cursor.style.visibility = "hidden";
      read.textContent = "";
    });
  }
})();
