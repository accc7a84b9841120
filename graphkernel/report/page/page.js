"use strict";
(() => {
  const holder = document.getElementById("data");
  for (const table of document.querySelectorAll("table.sortable")) sortable(table);
  if (!holder) return;
  const data = JSON.parse(holder.textContent);
  const SVG = "http://www.w3.org/2000/svg";
  const work = document.querySelector(".work");
  const details = document.querySelector(".details");
  const panes = {};
  let chosen = -1;

  function element(tag, text, attributes, ...children) {
    const made = document.createElement(tag);
    if (text !== "") made.textContent = text;
    for (const [name, value] of Object.entries(attributes || {})) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }
  function drawn(tag, attributes, ...children) {
    const made = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }
  function button(text, action, attributes) {
    const made = element("button", text, { type: "button", ...attributes });
    made.addEventListener("click", action);
    return made;
  }

  // ------------------------------------------------------------ drawings

  function pane(side) {
    const root = document.querySelector(`.pane[data-side="${side}"]`);
    const own = { side, root, canvas: root.querySelector(".canvas"), trail: root.querySelector(".trail"), at: 0, zoom: 0 };
    own.drawings = data[side];
    own.home = new Map();
    own.drawings.forEach((drawing, number) => drawing.boxes.forEach((box) => {
      if (box.k !== "group" && box.k !== "outside") for (const step of box.s) if (!own.home.has(step)) own.home.set(step, number);
    }));
    for (const each of root.querySelectorAll("[data-zoom]")) each.addEventListener("click", () => zoom(own, each.dataset.zoom));
    pannable(own.canvas);
    panes[side] = own;
    open(own, 0);
  }

  function open(own, number) {
    own.at = number;
    own.zoom = 0;
    const drawing = own.drawings[number];
    own.trail.replaceChildren(...trail(own, number));
    own.svg = drawn("svg", { role: "group", "aria-label": `${own.side}: ${drawing.title}` });
    own.lines = drawing.edges.map((edge) => {
      const line = drawn("path", { class: "edge", d: route(drawing, edge) });
      own.svg.append(line);
      return [edge[0], edge[1], line];
    });
    for (const [a, b] of drawing.far) own.svg.append(stub(drawing.boxes[a], 1, drawing.boxes[b]), stub(drawing.boxes[b], -1, drawing.boxes[a]));
    own.marks = drawing.boxes.map((box, place) => boxOf(own, box, place));
    own.svg.append(...own.marks);
    own.canvas.replaceChildren(own.svg);
    zoom(own, "fit");
    const first = drawing.boxes.reduce((top, box) => (box.y < top.y ? box : top), drawing.boxes[0]);
    if (first) own.canvas.scrollTo((first.x + first.w / 2) * own.zoom - own.canvas.clientWidth / 2, 0);
    mark(own);
  }

  function trail(own, number) {
    const parts = [];
    for (let at = number; at >= 0; at = own.drawings[at].parent) {
      const title = own.drawings[at].title, short = title.split("/").pop(), place = at;
      parts.unshift(at === number ? element("span", short, { title }) : button(short, () => open(own, place)));
      if (own.drawings[at].parent >= 0) parts.unshift(" › ");
    }
    return parts;
  }

  function route(drawing, edge) {
    const from = drawing.boxes[edge[0]], to = drawing.boxes[edge[1]];
    const points = [[from.x + from.w / 2, from.y + from.e]];
    const layer = Math.round((from.y + from.e / 2 - data.half) / data.row);
    edge.slice(2).forEach((x, place) => points.push([x, (layer + 1 + place) * data.row + data.half]));
    points.push([to.x + to.w / 2, to.y]);
    let path = `M${points[0]}`;
    for (let i = 1; i < points.length; i++) {
      const [ax, ay] = points[i - 1], [bx, by] = points[i], middle = (ay + by) / 2;
      path += `C${ax},${middle} ${bx},${middle} ${bx},${by}`;
    }
    return path;
  }

  function stub(box, way, other) {
    const x = box.x + box.w - 12, y = way > 0 ? box.y + box.e : box.y;
    const made = drawn("path", { class: "edge stub", d: `M${x},${y}l0,${9 * way}m-3,${-4 * way}l3,${4 * way}l3,${-4 * way}` });
    const hint = drawn("title", {});
    hint.textContent = `${way > 0 ? "also read by" : "also reads"} ${other.t} ${other.n}`;
    made.append(hint);
    return made;
  }

  function boxOf(own, box, place) {
    const heat = heatOf(box.s);
    const sheds = box.k === "input" || box.k === "output" || box.k === "outside" || box.k === "gone";
    const label = [box.t, box.n, shareOf(box.s)].filter(Boolean).join(", ");
    const mark = drawn("g", {
      class: `box ${box.k}${heat >= 0 && !sheds ? ` h${heat}` : ""}`, transform: `translate(${box.x},${box.y})`,
      tabindex: place ? "-1" : "0", role: "button", "aria-label": label,
    });
    const round = box.k === "host" ? 2 : box.e < 30 || box.k === "input" ? box.e / 2 : 7;
    if (box.k === "group") mark.append(drawn("rect", { x: 4, y: 4, width: box.w, height: box.e, rx: round }));
    mark.append(drawn("rect", { width: box.w, height: box.e, rx: round }));
    const tall = box.n && box.e > 30;
    mark.append(textAt(box.t, box.w / 2, tall ? 16 : box.e / 2 + 4, ""));
    if (tall) mark.append(textAt(box.n, box.w / 2, 30, "note"));
    const hint = drawn("title", {});
    hint.textContent = [box.h, shareOf(box.s), box.k === "group" ? "opens" : ""].filter(Boolean).join("\n");
    mark.append(hint);
    mark.addEventListener("click", () => pick(own, box, place));
    mark.addEventListener("keydown", (event) => key(own, event, box, place));
    return mark;
  }

  function textAt(text, x, y, kind) {
    const made = drawn("text", { x, y, class: kind });
    made.textContent = text;
    return made;
  }

  function heatOf(steps) {
    if (!data.measured || !steps.length) return -1;
    const share = steps.reduce((sum, step) => sum + data.steps[step].p, 0);
    return data.bins.filter((least) => share >= least).length;
  }
  function shareOf(steps) {
    if (!data.measured || !steps.length) return "";
    const time = steps.reduce((sum, step) => sum + data.steps[step].t, 0);
    const share = steps.reduce((sum, step) => sum + data.steps[step].p, 0);
    return `${time.toPrecision(3)} ms, ${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;
  }

  function zoom(own, way) {
    const drawing = own.drawings[own.at], room = own.canvas.clientWidth - 24;
    const fit = Math.max(0.6, Math.min(1.15, room / Math.max(1, drawing.width)));
    own.zoom = way === "fit" ? fit : way === "in" ? own.zoom * 1.25 : own.zoom / 1.25;
    own.svg.setAttribute("viewBox", `-6 -6 ${drawing.width + 16} ${drawing.height + 12}`);
    own.svg.setAttribute("width", (drawing.width + 16) * own.zoom);
    own.svg.setAttribute("height", (drawing.height + 12) * own.zoom);
  }

  function pannable(canvas) {
    let from = null;
    canvas.addEventListener("pointerdown", (event) => { from = [event.clientX, event.clientY, canvas.scrollLeft, canvas.scrollTop]; });
    canvas.addEventListener("pointermove", (event) => {
      if (from && event.buttons) canvas.scrollTo(from[2] + from[0] - event.clientX, from[3] + from[1] - event.clientY);
    });
  }

  function key(own, event, box, place) {
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); pick(own, box, place); return; }
    const ways = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };
    const way = ways[event.key];
    if (!way) return;
    event.preventDefault();
    const boxes = own.drawings[own.at].boxes, x = box.x + box.w / 2, y = box.y + box.e / 2;
    let best = -1, least = Infinity;
    boxes.forEach((other, number) => {
      const dx = other.x + other.w / 2 - x, dy = other.y + other.e / 2 - y;
      const ahead = dx * way[0] + dy * way[1], aside = Math.abs(dx * way[1]) + Math.abs(dy * way[0]);
      if (number !== place && ahead > 3 && ahead + 3 * aside < least) { least = ahead + 3 * aside; best = number; }
    });
    if (best >= 0) focus(own, best);
  }
  function focus(own, place) {
    own.marks.forEach((mark, number) => mark.setAttribute("tabindex", number === place ? "0" : "-1"));
    own.marks[place].focus();
  }

  // ------------------------------------------------------------ choosing

  function pick(own, box, place) {
    if (box.k === "group") { open(own, box.open); focus(own, 0); return; }
    own.marks.forEach((mark, number) => mark.setAttribute("tabindex", number === place ? "0" : "-1"));
    if (box.s.length) { choose(box.s[0], own); if (own.side === "before") showOperator(box); }
    else { chosen = -1; Object.values(panes).forEach(mark); showPlain(box); }
  }

  function choose(step, from) {
    chosen = step;
    for (const own of Object.values(panes)) {
      const home = own.home.get(step);
      if (own !== from && home !== undefined && !own.drawings[own.at].boxes.some((box) => box.k !== "group" && box.k !== "outside" && box.s.includes(step))) open(own, home);
      mark(own);
      if (own !== from) reveal(own);
    }
    showStep(step);
  }

  function mark(own) {
    const boxes = own.drawings[own.at].boxes;
    const on = boxes.map((box) => chosen >= 0 && box.s.includes(chosen));
    own.marks.forEach((each, place) => each.classList.toggle("on", on[place]));
    for (const [a, b, line] of own.lines) line.classList.toggle("near", on[a] || on[b]);
  }

  function reveal(own) {
    const place = own.drawings[own.at].boxes.findIndex((box) => box.s.includes(chosen) && box.k !== "outside");
    if (place < 0) return;
    const box = own.drawings[own.at].boxes[place];
    own.canvas.scrollTo((box.x + box.w / 2) * own.zoom - own.canvas.clientWidth / 2, box.y * own.zoom - own.canvas.clientHeight / 3);
  }

  // ------------------------------------------------------------ details

  function facts(pairs) {
    const list = element("dl", "");
    for (const [name, value] of pairs) if (value !== "" && value !== null) list.append(element("dt", name), element("dd", value));
    return list;
  }
  function listed(title, items) {
    if (!items.length) return [];
    const list = element("ul", "");
    items.forEach((item) => list.append(typeof item === "string" ? element("li", item) : element("li", "", {}, item)));
    return [element("h4", title), list];
  }
  function folded(title, text) {
    return text ? [element("details", "", {}, element("summary", title), element("pre", text, { tabindex: "0" }))] : [];
  }
  function decisions(title, found) {
    return listed(title, found.map(([code, text]) => element("span", "", {}, element("span", code, { class: "tag" }), text)));
  }

  function showStep(step) {
    const own = data.steps[step], kernel = own.k >= 0 ? data.kernels[own.k] : null;
    const parts = [element("h3", kernel ? kernel.n : own.o)];
    parts.push(element("p", kernel ? "One kernel of ours" : `Run by ${own.l}: no kernel computes it`, { class: "soft" }));
    parts.push(facts([["step", own.n], ["time", shareOf([step])], ["moves", kernel ? kernel.m : ""], ["unfused it would move", kernel ? kernel.u : ""], ["compiled in", kernel ? kernel.c : ""]]));
    if (kernel && kernel.s.length > 1) parts.push(...listed(`Called ${kernel.s.length} times`, kernel.s.slice(0, 30).map((other) => other === step ? own.n : link(data.steps[other].n, other))));
    parts.push(...listed(`Operators of the model (${own.b.length})`, own.b));
    if (kernel) parts.push(element("h4", "Computes"), element("p", kernel.o));
    parts.push(...listed("Reads", own.r), ...listed("Writes", own.w));
    parts.push(...decisions("Why it ends here", own.y), ...decisions("Why this is together", own.j));
    if (kernel) parts.push(...folded("Proof", kernel.p), ...folded("Source", kernel.x));
    details.replaceChildren(...parts);
    details.scrollTop = 0;
  }
  function showOperator(box) {
    const others = box.s.slice(1).map((step) => link(data.steps[step].n, step));
    details.prepend(element("p", box.h, { class: "mono" }), ...(others.length ? listed("Computed in several steps, also", others) : []), element("p", "became part of", { class: "soft" }));
  }
  function showPlain(box) {
    const words = { input: "An input of the graph.", output: "An output of the graph.", outside: "It is in another part of the graph.", gone: "Nothing is left of it in a run: it was folded, removed, merged with an equal one, is a view, or a number that follows from shapes." };
    details.replaceChildren(element("h3", box.h), element("p", words[box.k] || ""), element("p", box.n, { class: "mono" }));
  }
  function link(text, step) {
    return button(text, () => choose(step, null), { class: "link" });
  }

  // ------------------------------------------------------------ around

  function find(text) {
    const wanted = text.trim().toLowerCase();
    if (!wanted) return;
    const has = (box) => box.k !== "group" && box.k !== "outside" && `${box.t} ${box.n} ${box.h}`.toLowerCase().includes(wanted);
    for (const own of [panes.before, panes.after]) {
      const hits = own.drawings.flatMap((drawing, number) => drawing.boxes.flatMap((box, place) => (has(box) ? [[number, place]] : [])));
      if (!hits.length) continue;
      own.turn = own.wanted === wanted ? (own.turn + 1) % hits.length : 0;
      own.wanted = wanted;
      const [number, place] = hits[own.turn];
      if (number !== own.at) open(own, number);
      const box = own.drawings[number].boxes[place];
      document.getElementById("found").textContent = `${own.turn + 1} of ${hits.length}`;
      pick(own, box, place);
      own.canvas.scrollTo((box.x + box.w / 2) * own.zoom - own.canvas.clientWidth / 2, box.y * own.zoom - own.canvas.clientHeight / 3);
      return;
    }
    document.getElementById("found").textContent = "nothing";
  }

  pane("before");
  pane("after");
  for (const each of document.querySelectorAll("[data-view]")) each.addEventListener("click", () => {
    work.dataset.show = each.dataset.view;
    document.querySelectorAll("[data-view]").forEach((other) => other.setAttribute("aria-pressed", String(other === each)));
    Object.values(panes).forEach((own) => zoom(own, "fit"));
  });
  document.getElementById("find").addEventListener("keydown", (event) => { if (event.key === "Enter") find(event.target.value); });
  for (const row of document.querySelectorAll("tr[data-step]")) {
    row.addEventListener("click", () => { choose(Number(row.dataset.step), null); work.scrollIntoView({ block: "nearest" }); });
    row.addEventListener("keydown", (event) => { if (event.key === "Enter") row.click(); });
  }
  addEventListener("resize", () => Object.values(panes).forEach((own) => zoom(own, "fit")));
  const asked = /^#step=(\d+)$/.exec(location.hash);
  if (asked && data.steps[Number(asked[1])]) choose(Number(asked[1]), null);

  function sortable(table) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const press = head.querySelector("button");
      if (!press) return;
      press.addEventListener("click", () => {
        const falls = head.getAttribute("aria-sort") === "ascending" || (!head.hasAttribute("aria-sort") && head.classList.contains("number"));
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", falls ? "descending" : "ascending");
        const value = (row) => { const cell = row.cells[column]; return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value); };
        const rows = [...table.tBodies[0].rows].sort((a, b) => { const x = value(a), y = value(b); return (x < y ? -1 : x > y ? 1 : 0) * (falls ? -1 : 1); });
        table.tBodies[0].append(...rows);
      });
    });
  }
})();
