"use strict";
// Draws flame graphs on a canvas from the data in the page. Nothing is fetched, and no text becomes markup.
for (const figure of document.querySelectorAll("figure.flame")) flameGraph(figure);

// Computes for each node its caller, the node after its subtree, and its inclusive costs.
function flameTree(data) {
  const count = data.depth.length;
  const parent = new Int32Array(count);
  const next = new Int32Array(count);
  const path = [];
  data.depth.forEach((depth, node) => {
    parent[node] = depth ? path[depth - 1] : -1;
    path[depth] = node;
    next[node] = node + 1;
  });
  const own = {
    before: Float64Array.from(data.before, (steps) => steps * data.step[0]),
    after: Float64Array.from(data.after, (steps) => steps * data.step[1]),
  };
  const total = { before: own.before.slice(), after: own.after.slice(), removed: new Float64Array(count) };
  const leads = new Float64Array(count); // added cost of changed functions below a node
  const kind = (node) => (own.before[node] || own.after[node] ? data.kinds[data.kind[data.name[node]]] : "same");
  for (let node = count - 1; node >= 0; node--) {
    // A removed frame has no cost after; its callers stay as the path to it.
    if (!total.after[node]) total.removed[node] += own.before[node];
    const caller = parent[node];
    if (caller < 0) continue;
    next[caller] = Math.max(next[caller], next[node]);
    for (const side of ["before", "after", "removed"]) total[side][caller] += total[side][node];
    leads[caller] += leads[node] + (kind(node) === "same" ? 0 : own.after[node] - own.before[node]);
  }
  const start = {};
  for (const [shape, costs] of Object.entries(total)) {
    const free = new Float64Array(count); // where the next callee of a node begins
    start[shape] = new Float64Array(count);
    for (let node = 0; node < count; node++) {
      const caller = parent[node];
      if (caller >= 0) {
        start[shape][node] = free[caller];
        free[caller] += costs[node];
      }
      free[node] = start[shape][node];
    }
  }
  return { count, parent, next, own, total, leads, kind, start, depth: data.depth };
}

// Reads whole numbers from text: a digit of the second half is followed by a higher digit of the same number.
function flameNumbers(text, digits) {
  const half = digits.length / 2;
  const found = [];
  let [number, unit] = [0, 1];
  for (const letter of text) {
    const digit = digits.indexOf(letter);
    number += (digit % half) * unit;
    unit *= half;
    if (digit < half) {
      found.push(number);
      [number, unit] = [0, 1];
    }
  }
  return found;
}

function flameGraph(figure) {
  const ROW = 18;
  const MOST_ROWS = 300; // a canvas has a largest height
  const MARKS = { more: "▲", "much-more": "▲", less: "▼", "much-less": "▼", gone: "▼", new: "◆" };
  const WORDS = { new: "new", gone: "gone", same: "no proven change" };
  const data = JSON.parse(figure.querySelector("script").textContent);
  for (const column of ["kind", "name", "depth", "before", "after"]) {
    data[column] = flameNumbers(data[column], data.digits);
  }
  const tree = flameTree(data);
  const isCompared = data.sides[0] && data.sides[1];
  const lower = data.names.map((name) => name.toLowerCase());
  const called = { before: data.called[0], after: data.called[1], removed: "removed only" };
  const view = { shape: data.sides[1] ? "after" : "before", rootOnTop: true, zoomed: 0, selected: 0, wanted: "" };
  let letter = 0;

  // The chosen shape, and below it the other side; both show the same part, and only the first takes keys.
  const panes = (isCompared ? [() => view.shape, () => (view.shape === "before" ? "after" : "before")] : [() => view.shape])
    .map((shape) => ({ shape, canvas: document.createElement("canvas"), title: element("p", "pane"), painted: [] }));
  for (const pane of panes) pane.box = element("div", "flame-box", pane.canvas);
  const { canvas, box } = panes[0];
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "application");
  const keys = "Arrow keys move, Enter zooms, Escape resets, slash searches.";
  canvas.setAttribute("aria-label", `Flame graph of ${data.title}. ${keys}`);
  const details = element("p", "details");
  details.setAttribute("role", "status");
  const matched = element("span", "matched");
  matched.setAttribute("role", "status");
  const search = element("input");
  search.type = "search";
  const reset = element("button", "", "Reset");
  reset.type = "button";
  const shapes = isCompared ? { after: called.after, before: called.before, removed: called.removed } : {};
  const shape = choice(shapes, (chosen) => change({ shape: chosen }));
  const way = choice({ top: "on top", bottom: "at the bottom" }, (chosen) => change({ rootOnTop: chosen === "top" }));
  const roots = { 0: "all" };
  if (data.threads) for (let node = 1; node < tree.count; node = tree.next[node]) roots[node] = nameOf(node);
  const thread = choice(roots, (chosen) => change({ zoomed: Number(chosen), selected: Number(chosen) }));
  const controls = element("div", "controls");
  if (isCompared) controls.append(labelled("Widths ", shape));
  controls.append(labelled("Root ", way));
  if (data.threads) controls.append(labelled("Thread ", thread));
  controls.append(labelled("Search ", search), reset, matched);
  const titled = ({ title, box }) => (isCompared ? [title, box] : [box]);
  figure.prepend(controls, ...titled(panes[0]), details, ...panes.slice(1).flatMap(titled));
  figure.classList.add("live");

  search.addEventListener("input", () => change({ wanted: search.value.toLowerCase() }));
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") toMatch();
    else if (event.key === "Escape") change({ wanted: "" });
    else return;
    event.preventDefault();
    canvas.focus();
  });
  reset.addEventListener("click", () => change({ zoomed: 0, selected: 0, wanted: "" }));
  canvas.addEventListener("keydown", pressed);
  canvas.addEventListener("focus", () => draw());
  canvas.addEventListener("blur", () => draw());
  for (const pane of panes) {
    pane.canvas.addEventListener("mousemove", (event) => describe(nodeAt(pane, event) ?? view.selected));
    pane.canvas.addEventListener("mouseleave", () => describe(view.selected));
    pane.canvas.addEventListener("click", (event) => {
      const node = nodeAt(pane, event);
      if (node !== undefined) change({ zoomed: node, selected: node });
    });
  }
  // A link from a hotspot selects its function here.
  for (const link of document.querySelectorAll(`a[href="#${figure.parentElement.id}"][data-find]`)) {
    link.addEventListener("click", () => {
      change({ wanted: link.dataset.find.toLowerCase() });
      if (matches().length) toMatch();
      else change({ wanted: "" });
    });
  }
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.target.closest("input, select, textarea") || !box.clientWidth) return;
    // The search of the graph that has the focus, else of the first graph.
    const other = event.target.closest("figure.flame");
    if (other && other !== figure) return;
    event.preventDefault();
    search.focus();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw());
  new ResizeObserver(() => draw()).observe(figure);
  change({});

  function element(name, kind, ...content) {
    const made = document.createElement(name);
    if (kind) made.className = kind;
    made.append(...content);
    return made;
  }

  function choice(options, chosen) {
    const made = element("select");
    for (const [key, words] of Object.entries(options)) made.append(new Option(words, key));
    made.addEventListener("change", () => chosen(made.value));
    return made;
  }

  function nameOf(node) {
    return data.names[data.name[node]];
  }

  function change(changes) {
    Object.assign(view, changes);
    const costs = tree.total[view.shape];
    // If a frame has no width in this shape, use its nearest caller that has one.
    while (view.zoomed && !costs[view.zoomed]) view.zoomed = tree.parent[view.zoomed];
    while (view.selected && !costs[view.selected]) view.selected = tree.parent[view.selected];
    if (search.value.toLowerCase() !== view.wanted) search.value = view.wanted;
    let top = view.zoomed;
    while (tree.depth[top] > 1) top = tree.parent[top];
    thread.value = String(top);
    tellMatched();
    draw();
    describe(view.selected);
  }

  // Frames inside a matching frame are not counted again.
  function tellMatched() {
    matched.textContent = "";
    if (!view.wanted) return;
    const [found, sum] = matches().reduce(([count, sum], node) => [count + 1, sum + tree.total[view.shape][node]], [0, 0]);
    matched.textContent = `${share(sum)} matched in ${found} ${found === 1 ? "frame" : "frames"}`;
  }

  function matches() {
    const found = [];
    for (let node = 0; node < tree.count; ) {
      const fits = tree.total[view.shape][node] && lower[data.name[node]].includes(view.wanted);
      if (fits) found.push(node);
      node = fits ? tree.next[node] : node + 1;
    }
    return found;
  }

  function toMatch() {
    const costs = tree.total[view.shape];
    const widest = matches().reduce((one, other) => (one < 0 || costs[other] > costs[one] ? other : one), -1);
    if (view.wanted && widest >= 0) change({ zoomed: isInside(widest) ? view.zoomed : 0, selected: widest });
  }

  function isInside(node) {
    return node >= view.zoomed && node < tree.next[view.zoomed];
  }

  // The callers of the zoomed frame take the whole width; then come all its visible callees.
  function place(width, shape) {
    const costs = tree.total[shape];
    const start = tree.start[shape];
    const found = [];
    let zoomed = view.zoomed;
    while (zoomed && !costs[zoomed]) zoomed = tree.parent[zoomed];
    for (let node = tree.parent[zoomed]; node >= 0; node = tree.parent[node]) {
      found.unshift({ node, x: 0, width, row: tree.depth[node] });
    }
    const scale = costs[zoomed] ? width / costs[zoomed] : 0;
    for (let node = zoomed; node < tree.next[zoomed]; ) {
      const wide = costs[node] * scale;
      const isShown = wide >= 0.5 && tree.depth[node] < MOST_ROWS;
      if (isShown) found.push({ node, x: (start[node] - start[zoomed]) * scale, width: wide, row: tree.depth[node] });
      node = isShown ? node + 1 : tree.next[node];
    }
    return found;
  }

  function draw() {
    const coloured = new Set();
    for (const pane of panes) drawPane(pane, pane === panes[0] ? coloured : new Set());
    figure.dataset.zoomed = nameOf(view.zoomed);
    if (box.clientWidth) figure.dataset.coloured = JSON.stringify(Array.from(coloured).sort());
  }

  function drawPane(pane, coloured) {
    const { canvas, box } = pane;
    const width = box.clientWidth;
    if (!width) return;
    const painted = place(width, pane.shape());
    pane.painted = painted;
    const whole = data.unit === "share" ? "" : `: ${amount(tree.total[pane.shape()][0])}`;
    pane.title.textContent = `${called[pane.shape()]}${whole}`;
    const rows = painted.reduce((most, frame) => Math.max(most, frame.row + 1), 1);
    for (const frame of painted) frame.y = (view.rootOnTop ? frame.row : rows - 1 - frame.row) * ROW;
    const dots = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * dots);
    canvas.height = Math.round(rows * ROW * dots);
    canvas.style.height = `${rows * ROW}px`;
    const pen = canvas.getContext("2d");
    pen.scale(dots, dots);
    pen.font = "12px ui-monospace, 'DejaVu Sans Mono', monospace";
    pen.textBaseline = "middle";
    letter = letter || pen.measureText("m").width;
    const style = getComputedStyle(figure);
    const colour = (name) => style.getPropertyValue(`--flame-${name}`).trim();
    const colours = Object.fromEntries([...data.kinds, "s0", "s1", "s2", "ink", "edge"].map((name) => [name, colour(name)]));
    for (const frame of painted) paint(pen, frame, colours, coloured);
  }

  function paint(pen, { node, x, y, width }, colours, coloured) {
    const kind = tree.kind(node);
    const fits = !view.wanted || lower[data.name[node]].includes(view.wanted);
    pen.globalAlpha = fits ? 1 : 0.3;
    pen.fillStyle = isCompared ? colours[kind] : colours[`s${data.name[node] % 3}`];
    const wide = width > 3 ? width - 1 : width;
    pen.fillRect(x, y, wide, ROW - 1);
    if (isCompared && kind !== "same") coloured.add(nameOf(node));
    else if (isCompared && tree.leads[node]) {
      pen.fillStyle = colours[tree.leads[node] > 0 ? "much-more" : "much-less"];
      pen.fillRect(x, y + ROW - 4, wide, 3);
    }
    pen.fillStyle = colours.ink;
    const letters = Math.floor((width - 7) / letter);
    if (letters >= 3) pen.fillText(fitted(isCompared ? label(node) : nameOf(node), letters), x + 3, y + ROW / 2);
    if (node === view.selected && document.activeElement === canvas) {
      pen.globalAlpha = 1;
      pen.strokeStyle = colours.edge;
      pen.lineWidth = 2;
      pen.strokeRect(x + 1, y + 1, Math.max(1, width - 3), ROW - 3);
    }
  }

  function label(node) {
    const mark = MARKS[tree.kind(node)];
    return mark ? `${mark} ${nameOf(node)}` : nameOf(node);
  }

  function fitted(text, letters) {
    const all = Array.from(text);
    return all.length <= letters ? text : `${all.slice(0, letters - 1).join("")}…`;
  }

  function describe(node) {
    if (!tree.total[view.shape][0]) {
      details.textContent = "Nothing was removed.";
      return;
    }
    const sides = data.sides[0] && data.sides[1] ? ["before", "after"] : [data.sides[1] ? "after" : "before"];
    const parts = sides.map((side) => {
      const cost = data.unit === "share" ? "" : `${amount(tree.total[side][node])}, `;
      const whole = tree.total[side][0] ? tree.total[side][node] / tree.total[side][0] : 0;
      return `${isCompared ? `${called[side]} ` : ""}${cost}${percent(whole)}`;
    });
    if (isCompared) {
      const change = (costs) => signed(costs.after[node] - costs.before[node]);
      parts.push(`change ${change(tree.total)}, of its own ${change(tree.own)}`);
      const kind = tree.kind(node);
      if (tree.own.before[node] || tree.own.after[node]) {
        const word = WORDS[kind] || (kind.endsWith("more") ? "costs more" : "costs less");
        parts.push(`this function: ${MARKS[kind] ? `${MARKS[kind]} ` : ""}${word}`);
      }
    }
    details.textContent = `${nameOf(node)}: ${parts.join("; ")}`;
  }

  function share(cost) {
    const whole = tree.total[view.shape][0];
    return percent(whole ? cost / whole : 0);
  }

  function percent(part) {
    return `${(100 * part).toFixed(part && part < 0.01 ? 2 : 1)}%`;
  }

  function signed(cost) {
    return `${cost > 0 ? "+" : cost < 0 ? "-" : ""}${amount(Math.abs(cost))}`;
  }

  // Returns a cost in a suitable unit.
  function amount(cost) {
    if (data.unit === "share") return percent(cost);
    const decimal = [["G", 1e9], ["M", 1e6], ["k", 1e3], ["", 1]];
    const ladders = {
      ns: [["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]],
      bytes: [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10], ["B", 1]],
    };
    const ladder = ladders[data.unit] || decimal;
    const [symbol, size] = ladder.find((rung) => cost >= rung[1] * 0.9995) || ladder[ladder.length - 1];
    const number = cost / size;
    const digits = !number ? 0 : Math.min(6, Math.max(0, 2 - Math.floor(Math.log10(number))));
    return `${number.toFixed(digits)}${symbol.length && ladder !== decimal ? " " : ""}${symbol}`;
  }

  function nodeAt({ canvas, painted }, event) {
    const area = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - area.left, event.clientY - area.top];
    return painted.find((frame) => x >= frame.x && x < frame.x + frame.width && y >= frame.y && y < frame.y + ROW)?.node;
  }

  function pressed(event) {
    const to = { ArrowUp: view.rootOnTop ? up : down, ArrowDown: view.rootOnTop ? down : up };
    const aside = { ArrowLeft: -1, ArrowRight: 1 };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (to[event.key]) select(to[event.key]());
    else if (aside[event.key]) select(beside(aside[event.key]));
    else if (event.key === "Home") select(0);
    else if (event.key === "Enter" || event.key === " ") change({ zoomed: view.selected });
    else if (event.key === "Escape") change(view.zoomed ? { zoomed: 0 } : { selected: 0, wanted: "" });
    else return;
    event.preventDefault();
  }

  function up() {
    return tree.parent[view.selected];
  }

  // Returns the widest drawn callee.
  function down() {
    const callees = panes[0].painted.filter((frame) => tree.parent[frame.node] === view.selected);
    return callees.reduce((one, other) => (!one || other.width > one.width ? other : one), undefined)?.node;
  }

  function beside(step) {
    const row = panes[0].painted.filter((frame) => tree.depth[frame.node] === tree.depth[view.selected]);
    return row[row.findIndex((frame) => frame.node === view.selected) + step]?.node;
  }

  function select(node) {
    if (node === undefined || node < 0) return;
    change({ selected: node });
    const frame = panes[0].painted.find((each) => each.node === node);
    if (frame && frame.y < box.scrollTop) box.scrollTop = frame.y;
    if (frame && frame.y + ROW > box.scrollTop + box.clientHeight) box.scrollTop = frame.y + ROW - box.clientHeight;
  }
}
