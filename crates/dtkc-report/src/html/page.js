"use strict";
// The order of clusters; and the page is ready when all scripts have run.
(() => {
  const list = document.getElementById("cluster-list");
  const buttons = [...document.querySelectorAll("[data-order]")];
  const value = (card, key) => Number(card.dataset[key]);
  for (const button of buttons) {
    button.addEventListener("click", () => {
      const key = button.dataset.order;
      const cards = [...list.children];
      cards.sort((a, b) => value(a, key) - value(b, key) || value(a, "cluster") - value(b, "cluster"));
      list.append(...cards);
      for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
    });
  }
  document.body.dataset.ready = "yes";
})();
