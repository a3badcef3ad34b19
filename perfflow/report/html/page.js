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

// Shows the text of the nearest point of a picture, for a pointer or by arrow keys; and zooms a picture over time.
for (const box of document.querySelectorAll(".scroll")) {
  if (!box.querySelector("[data-tips]")) continue;
  const tip = document.createElement("div");
  let points;
  let at = -1;
  tip.className = "tip";
  tip.setAttribute("role", "status");
  tip.hidden = true;
  box.append(tip);
  box.classList.add("told");
  box.addEventListener("pointermove", (event) => {
    if (!event.buttons) show(nearest(event.clientX, event.clientY));
  });
  box.addEventListener("pointerleave", () => show(-1));
  box.addEventListener("blur", () => show(-1));
  box.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey || (!step && event.key !== "Escape")) return;
    event.preventDefault();
    read();
    show(step ? Math.min(points.length - 1, Math.max(0, at < 0 ? (step > 0 ? 0 : points.length - 1) : at + step)) : -1);
  });

  // Points are read when they are first needed, from left to right.
  function read() {
    if (points) return;
    points = [];
    for (const shape of box.querySelectorAll("[data-tips]")) {
      const texts = shape.dataset.tips.split("\n");
      if (texts.length > 1) {
        const found = shape.getAttribute("d").matchAll(/[ML]([-\d.e+]+) ([-\d.e+]+)/g);
        points.push(...Array.from(found, (pair, place) => ({ shape, x: +pair[1], y: +pair[2], text: texts[place] })));
      } else {
        const around = shape.getBBox();
        points.push({ shape, x: around.x + around.width / 2, y: around.y + around.height / 2, text: texts[0] });
      }
    }
    points.sort((one, other) => one.x - other.x);
  }

  function placed(point) {
    return new DOMPoint(point.x, point.y).matrixTransform(point.shape.getScreenCTM());
  }

  function nearest(x, y) {
    read();
    let [best, least] = [-1, 40];
    points.forEach((point, place) => {
      const found = placed(point);
      const far = Math.hypot(found.x - x, found.y - y);
      if (far < least) [best, least] = [place, far];
    });
    return best;
  }

  function show(place) {
    at = place;
    tip.hidden = at < 0;
    if (at < 0) return;
    const [area, found] = [box.getBoundingClientRect(), placed(points[at])];
    tip.textContent = points[at].text;
    tip.classList.toggle("left", found.x > area.left + area.width / 2);
    tip.style.left = `${found.x - area.left + box.scrollLeft}px`;
    tip.style.top = `${found.y - area.top}px`;
  }
}
