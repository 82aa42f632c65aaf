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
for (const curve of all("svg .curve")) curve.querySelector("title")?.remove();
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
    const curves = all(".curve", svg).filter(curve => !curve.classList.contains("off"));
    if (!svg.dataset.axes || !curves.length) { box.hidden = true; return; }
    const [left, right, x0, x1, bottom, top, y0, y1] = svg.dataset.axes.split(" ").map(Number);
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse()).x;
    if (at < left || at > right) { box.hidden = true; return; }
    const value = y => digits(y0 + (bottom - y) / (bottom - top) * (y1 - y0));
    const nearest = list => list.reduce((a, b) => Math.abs(b[0] - at) < Math.abs(a[0] - at) ? b : a);
    const told = curves.map(curve => {
      const line = all(".line", curve).flatMap(points), band = all(".band", curve).flatMap(path => {
        const ends = points(path), half = ends.length / 2;
        return ends.slice(0, half).map(([x, high], i) => [x, high, ends[2 * half - 1 - i][1]]);
      });
      if (!line.length) return "";
      const [x, y] = nearest(line), around = band.length ? nearest(band) : null;
      const interval = around && Math.abs(around[0] - x) < 1 ? ` (${value(around[2])} to ${value(around[1])})` : "";
      return `${curve.dataset.model}: ${value(y)}${interval}`;
    });
    rule.setAttribute("d", `M${at} ${top}V${bottom}`);
    tell([`at ${digits(x0 + (at - left) / (right - left) * (x1 - x0))}`, ...told.filter(Boolean)], event);
  });
}
