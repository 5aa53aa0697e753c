const list = document.getElementById("clusters");
const buttons = [...document.querySelectorAll("[data-order]")];
const number = (section, key) => Number(section.dataset[key]);
for (const button of buttons) {
  button.addEventListener("click", () => {
    const key = button.dataset.order;
    const sections = [...list.children];
    sections.sort((a, b) => key === "cluster" ? number(a, key) - number(b, key)
      : number(b, key) - number(a, key) || number(a, "cluster") - number(b, "cluster"));
    list.append(...sections);
    for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
  });
}
document.getElementById("hide-empty").addEventListener("change", (event) => {
  for (const section of list.children) section.hidden = event.target.checked && number(section, "images") === 0;
});
