// What a page can do beyond being read. Without this script all of it is shown, and nothing can be chosen.
const all = (what, within = document) => [...within.querySelectorAll(what)];

// Columns sort by the number that a cell begins with, after marks such as "<"; columns of text by their text.
const number = cell => cell.matches("td:not(.text)")
  ? parseFloat(cell.textContent.replace("−", "-").replace(/^[^\d+-]+/, "")) : NaN;
for (const button of all("th button")) {
  button.addEventListener("click", () => {
    const head = button.closest("th"), body = head.closest("table").tBodies[0];
    const down = head.getAttribute("aria-sort") === "ascending";
    for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const cell = row => row.cells[head.cellIndex], value = row => number(cell(row)), sign = down ? -1 : 1;
    const known = [...body.rows].filter(row => !isNaN(value(row))), rest = [...body.rows].filter(row => isNaN(value(row)));
    known.sort((a, b) => sign * (value(a) - value(b)));
    if (!known.length) rest.sort((a, b) => sign * cell(a).textContent.localeCompare(cell(b).textContent));
    body.append(...known, ...rest);
  });
}

// On a phone such a table is a list, with the head of its column before every cell; cells know its time.
for (const table of all("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  for (const cell of all("tbody td", table)) {
    const head = heads[cell.cellIndex];
    cell.dataset.label = head.textContent;
    if (head.dataset.time) cell.dataset.time = head.dataset.time;
  }
  table.classList.add("listed");
}

// Models, time, bands and folded parts are chosen once for the whole page; tabs choose the outcome.
const pressed = button => button.getAttribute("aria-pressed") === "true";
for (const bar of all(".controls")) {
  bar.hidden = false;
  for (const button of all("[data-choose]", bar)) {
    button.addEventListener("click", () => {
      button.setAttribute("aria-pressed", String(!pressed(button)));
      for (const part of all("[data-model]"))
        if (part.dataset.model === button.dataset.choose) part.classList.toggle("off", !pressed(button));
    });
  }
  const time = bar.querySelector("select");
  time?.addEventListener("change", () => {
    const middle = time.options[1 + Math.floor((time.options.length - 1) / 2)].value;
    for (const part of all("[data-time]")) {
      const column = part.matches("th, td");
      part.hidden = part.dataset.time !== (time.value || (column ? part.dataset.time : middle));
    }
  });
  bar.querySelector("input").addEventListener("change", event =>
    document.body.classList.toggle("no-bands", !event.target.checked));
  const unfold = bar.querySelector(".unfold");
  unfold.addEventListener("click", () => {
    unfold.setAttribute("aria-pressed", String(!pressed(unfold)));
    for (const part of all("details")) part.open = pressed(unfold);
  });
}
for (const tabs of all(".tabs")) {
  const buttons = all("button", tabs), show = chosen => {
    for (const button of buttons) {
      button.setAttribute("aria-selected", String(button === chosen));
      button.tabIndex = button === chosen ? 0 : -1;
    }
    all("section.outcome").forEach((part, i) => { part.hidden = i !== buttons.indexOf(chosen); });
  };
  tabs.hidden = false;
  buttons.forEach((button, i) => {
    button.addEventListener("click", () => show(button));
    button.addEventListener("keydown", event => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step) show(buttons[(i + step + buttons.length) % buttons.length]), document.activeElement.blur(),
        buttons.find(b => b.tabIndex === 0).focus();
    });
  });
  show(buttons[0]);
}

// Where the pointer rests, a box tells the values: of points and bars what they hold, of curves what their
// paths and axes say.
const box = document.createElement("div");
box.className = "values";
box.hidden = true;
box.setAttribute("role", "status");
document.body.append(box);
const tell = (lines, event) => {
  box.replaceChildren(...lines.map(line => Object.assign(document.createElement("div"), { textContent: line })));
  box.hidden = false;
  box.style.left = `${Math.max(0, Math.min(event.clientX + 14, innerWidth - box.offsetWidth - 6))}px`;
  box.style.top = `${Math.max(0, Math.min(event.clientY + 14, innerHeight - box.offsetHeight - 6))}px`;
};
for (const title of all("svg .mark > title, svg .bar > title")) {
  title.parentNode.dataset.tip = title.textContent;
  title.remove();
}
const points = path => {
  const steps = path.getAttribute("d").match(/-?[\d.]+/g).map(Number), found = [[steps[0], steps[1]]];
  for (let i = 2; i < steps.length; i += 2) found.push([found.at(-1)[0] + steps[i], found.at(-1)[1] + steps[i + 1]]);
  return found;
};
const digits = value => String(parseFloat(value.toPrecision(4))).replace("-", "−");
for (const svg of all("svg[data-axes], .panels svg[viewBox]")) {
  if (svg.parentNode.closest("svg")) continue;
  const rule = document.createElementNS(svg.namespaceURI, "path");
  rule.setAttribute("class", "pointer");
  svg.append(rule);
  svg.addEventListener("pointerleave", () => { box.hidden = true; rule.setAttribute("d", ""); });
  svg.addEventListener("pointermove", event => {
    const tip = event.target.closest("[data-tip]")?.dataset.tip;
    if (tip) return tell([tip], event);
    const shown = what => all(what, svg).filter(part => !part.classList.contains("off")), curves = shown(".curve");
    if (!svg.dataset.axes || !curves.length && !shown(".points").length) { box.hidden = true; return; }
    const [left, right, x0, x1, bottom, top, y0, y1] = svg.dataset.axes.split(" ").map(Number);
    const { x: at, y: height } = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    if (at < left || at > right) { box.hidden = true; return; }
    const value = y => digits(y0 + (bottom - y) / (bottom - top) * (y1 - y0));
    const time = x => digits(x0 + (x - left) / (right - left) * (x1 - x0));
    for (const group of shown(".points")) {  // the point under the pointer, with its interval
      const numbers = (path, what) => [...(path?.getAttribute("d") ?? "").matchAll(what)].map(found => found.slice(1).map(Number));
      const point = numbers(group.querySelector(".mark"), /M([\d.]+) ([\d.]+)/g).find(([x, y]) => Math.hypot(x - at, y - height) < 5);
      if (!point) continue;
      const ends = numbers(group.querySelector(".line"), /M([\d.]+) ([\d.]+)V([\d.]+)/g).find(([x]) => x === point[0]);
      const interval = ends ? ` (${value(ends[1])} to ${value(ends[2])})` : "";
      return tell([`${group.dataset.model} at ${time(point[0])}: ${value(point[1])}${interval}`], event);
    }
    const there = list => {  // between the two points around the pointer
      const i = list.findIndex(point => point[0] >= at), [a, b] = [list[Math.max(i - 1, 0)], list[i]];
      if (i < 0 || (i === 0 && b[0] > at + 1)) return null;
      const share = b[0] > a[0] ? (at - a[0]) / (b[0] - a[0]) : 0;
      return a.map((value, k) => value + share * (b[k] - value));
    };
    const told = curves.map(curve => {
      const line = there(all(".line", curve).flatMap(points)), band = there(all(".band", curve).flatMap(path => {
        const ends = points(path), half = ends.length / 2;
        return ends.slice(0, half).map(([x, high], i) => [x, high, ends[2 * half - 1 - i][1]]);
      }));
      return line && `${curve.dataset.model}: ${value(line[1])}${band ? ` (${value(band[2])} to ${value(band[1])})` : ""}`;
    });
    rule.setAttribute("d", `M${at} ${top}V${bottom}`);
    if (!curves.length) { box.hidden = true; return; }
    tell([`at ${time(at)}`, ...told.filter(Boolean)], event);
  });
}
