"use strict";
// Filters and sorts long tables. The page works without it. Nothing is fetched, and no text becomes markup.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  table.tHead.querySelectorAll("th").forEach((head) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => sort(head, head.cellIndex));
  });
  if (rows.length > 10) addControls();

  function sort(head, column) {
    const down = head.getAttribute("aria-sort") === "ascending";
    for (const other of table.tHead.querySelectorAll("th")) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const keyed = rows.map((row, place) => [key(row.cells[column].textContent), place, row]);
    keyed.sort(([one, first], [other, second]) => (compare(one, other) || first - second) * (down ? -1 : 1));
    body.append(...keyed.map((entry) => entry[2]));
  }

  function addControls() {
    const controls = document.createElement("div");
    controls.className = "controls";
    const search = document.createElement("input");
    search.type = "search";
    controls.append(labelled("Filter rows ", search));
    const told = document.createElement("span");
    told.setAttribute("role", "status");
    const only = document.createElement("input");
    only.type = "checkbox";
    only.checked = table.classList.contains("filtered");
    if (body.querySelector("tr.rest")) controls.append(labelled(`${table.dataset.filter} `, only));
    controls.append(told);
    const update = () => {
      const wanted = search.value.toLowerCase();
      let shown = 0;
      rows.forEach((row, place) => {
        const fits = texts[place].includes(wanted) && !(only.checked && row.classList.contains("rest"));
        row.hidden = !fits;
        shown += fits;
      });
      told.textContent = `${shown} of ${rows.length} rows`;
    };
    const texts = rows.map((row) => row.textContent.toLowerCase());
    search.addEventListener("input", update);
    only.addEventListener("change", update);
    table.parentElement.before(controls);
    update();
    table.classList.remove("filtered");
  }
}

function labelled(text, input) {
  const label = document.createElement("label");
  label.append(text, input);
  return label;
}

// Returns a value with its unit as a number in base units, so that 900 µs sorts before 1.2 ms; other text unchanged.
function key(text) {
  const found = /^[≤~( \u00a0]*([-+]?[\d.]+(?:e[-+]?\d+)?)[ \u00a0]?([a-zA-Zμµ%]*)/.exec(text.trim());
  if (!found) return text.trim().toLowerCase();
  const powers = { n: 1e-9, "μ": 1e-6, "µ": 1e-6, m: 1e-3, k: 1e3, K: 1e3, M: 1e6, G: 1e9, T: 1e12 };
  const unit = found[2];
  const power = unit.length > 1 && unit !== "min" ? powers[unit[0]] || 1 : 1;
  return Number(found[1]) * (unit[1] === "i" ? 2 ** (10 * Math.round(Math.log10(power) / 3)) : power);
}

function compare(one, other) {
  if (typeof one === "number" && typeof other === "number") return one - other;
  if (typeof one === "number") return -1;
  if (typeof other === "number") return 1;
  return one < other ? -1 : one > other ? 1 : 0;
}
