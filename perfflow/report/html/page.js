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
  if (box.querySelector("[data-tips]")) tellPoints(box);
}

function tellPoints(box) {
  const tip = document.createElement("div");
  const time = box.querySelector("svg.whole");
  const all = time ? [0, time.viewBox.baseVal.width] : [0, Infinity];
  let shown = all;
  let points;
  let at = -1;
  let pressed;
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
    const factor = time && { "+": 0.5, "-": 2, 0: Infinity }[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey || !(step || factor || event.key === "Escape")) return;
    event.preventDefault();
    if (factor) return zoom(factor);
    const seen = visible();
    const next = at < 0 ? (step > 0 ? 0 : seen.length - 1) : seen.indexOf(at) + step;
    show(step ? seen[Math.min(seen.length - 1, Math.max(0, next))] ?? -1 : -1);
  });
  if (time) addZoom();

  // Points are read when they are first needed, from left to right.
  function visible() {
    if (!points) {
      points = [];
      for (const shape of box.querySelectorAll("[data-tips]")) {
        const texts = shape.dataset.tips.split("\n");
        const around = texts.length > 1 || shape.getBBox();
        const found = texts.length > 1 && shape.getAttribute("d").matchAll(/[ML]([-\d.e+]+) ([-\d.e+]+)/g);
        if (found) points.push(...Array.from(found, ([, x, y], place) => ({ shape, x: +x, y: +y, text: texts[place] })));
        else points.push({ shape, x: around.x + around.width / 2, y: around.y + around.height / 2, text: texts[0] });
      }
      points.sort((one, other) => one.x - other.x);
    }
    return Array.from(points.keys()).filter((place) => points[place].x >= shown[0] && points[place].x <= shown[1]);
  }

  function placed(point) {
    return new DOMPoint(point.x, point.y).matrixTransform(point.shape.getScreenCTM());
  }

  function nearest(x, y) {
    let [best, least] = [-1, 40];
    for (const place of visible()) {
      const found = placed(points[place]);
      const far = Math.hypot(found.x - x, found.y - y);
      if (far < least) [best, least] = [place, far];
    }
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

  function addZoom() {
    const controls = document.createElement("div");
    controls.className = "controls";
    for (const [words, factor] of [["Zoom in", 0.5], ["Zoom out", 2], ["All", Infinity]]) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = words;
      button.addEventListener("click", () => zoom(factor));
      controls.append(button);
    }
    box.before(controls);
    box.addEventListener("pointerdown", (event) => {
      pressed = across(event.clientX);
    });
    box.addEventListener("pointerup", (event) => {
      const ends = [pressed, across(event.clientX)].sort((one, other) => one - other);
      if (ends[1] - ends[0] > (shown[1] - shown[0]) / 50) limit(...ends);
    });
  }

  function across(x) {
    const area = time.getBoundingClientRect();
    return shown[0] + ((x - area.left) / area.width) * (shown[1] - shown[0]);
  }

  // Zooms around the shown point, or else to the newest ones.
  function zoom(factor) {
    if (factor === Infinity) return limit(...all);
    const wide = (shown[1] - shown[0]) * factor;
    const middle = at < 0 ? shown[1] - wide / 2 : points[at].x;
    limit(middle - wide / 2, middle + wide / 2);
  }

  function limit(from, to) {
    const wide = Math.min(to - from, all[1]);
    const start = Math.max(0, Math.min(from, all[1] - wide)) || 0;
    shown = [start, start + wide];
    time.setAttribute("viewBox", `${start} 0 ${wide} ${time.viewBox.baseVal.height}`);
    const seen = visible().filter((place) => points[place].text[4] === "-");
    for (const [name, place] of [["first", seen[0]], ["last", seen[seen.length - 1]]]) {
      if (place !== undefined) box.querySelector(`.${name}`).textContent = points[place].text.slice(0, 10);
    }
    show(at < 0 || !visible().includes(at) ? -1 : at);
  }
}
