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

// Where the pointer rests, a box tells the values: of points and bars what is written beside them, of curves what their
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
// Points (x, y) of a curve, or of the outline of a band, in runs: they begin at M, and go on by differences after l.
const runs = part => {
  const band = part.matches(".band"), found = [];
  const drop = band ? Number(part.querySelector("use")?.getAttribute("y") ?? 0) : 0;
  for (const path of all(band ? "path" : ":scope > path", part)) {
    for (const [, start, steps] of path.getAttribute("d").matchAll(/M([^Mlz]*)l?([^Mz]*)/g)) {
      const [x, y] = start.match(/-?[\d.]+/g).map(Number), numbers = (steps.match(/-?(\d+\.?\d*|\.\d+)/g) ?? []).map(Number);
      const run = [[x, y + drop]];
      for (let i = 0; i < numbers.length; i += 2) run.push([run.at(-1)[0] + numbers[i], run.at(-1)[1] + numbers[i + 1]]);
      found.push(run);
    }
  }
  return found;
};
// Heights at which the lines between these points pass a place.
const heights = (runs, at) => runs.flatMap(run => run.slice(1).flatMap((b, i) => {
  const a = run[i];
  return a[0] !== b[0] && (a[0] - at) * (b[0] - at) <= 0 ? [a[1] + (at - a[0]) / (b[0] - a[0]) * (b[1] - a[1])] : [];
}));
const digits = value => String(parseFloat(value.toPrecision(4))).replace("-", "−");
for (const svg of all(".panels svg[viewBox]")) {
  const rule = document.createElementNS(svg.namespaceURI, "path");
  rule.setAttribute("class", "pointer");
  svg.append(rule);
  svg.addEventListener("pointerleave", () => { box.hidden = true; rule.setAttribute("d", ""); });
  svg.addEventListener("pointermove", event => {
    const tip = event.target.closest("[data-tip]")?.dataset.tip;
    if (tip) return tell([tip], event);
    const shown = what => all(what, svg).filter(part => !part.classList.contains("off")), lines = shown(".line");
    if (!svg.dataset.axes || !lines.length) { box.hidden = true; return; }
    const [left, right, x0, x1, bottom, top, y0, y1] = svg.dataset.axes.split(" ").map(Number);
    const { x: at } = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    if (at < left || at > right) { box.hidden = true; return; }
    const value = y => digits(y0 + (bottom - y) / (bottom - top) * (y1 - y0));
    const bands = shown(".band"), told = lines.map(line => {
      const name = line.dataset.model, here = heights(runs(line), at);
      const around = bands.filter(band => band.dataset.model === name).flatMap(band => heights(runs(band), at));
      const band = around.length ? ` (${value(Math.max(...around))} to ${value(Math.min(...around))})` : "";
      return here.length ? `${name}: ${value(here.at(-1))}${band}` : null;
    });
    rule.setAttribute("d", `M${at} ${top}V${bottom}`);
    tell([`at ${digits(x0 + (at - left) / (right - left) * (x1 - x0))}`, ...told.filter(Boolean)], event);
  });
}
