// Columns sort by the number a cell holds (data-value), or by its text; folded parts open for printing.
const key = cell => cell.dataset.value ?? cell.textContent.trim();
const compare = (a, b) => {
  const [x, y] = [parseFloat(a), parseFloat(b)];
  if (isNaN(x) || isNaN(y)) return isNaN(x) && isNaN(y) ? a.localeCompare(b) : isNaN(x) ? 1 : -1;
  return x - y;
};
for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => {
    const head = button.closest("th"), body = head.closest("table").tBodies[0];
    const down = head.getAttribute("aria-sort") === "ascending";
    for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...body.rows].map(row => [key(row.cells[head.cellIndex]), row]);
    const missing = rows.filter(([k]) => k === ""), known = rows.filter(([k]) => k !== "");
    known.sort(([a], [b]) => (down ? -1 : 1) * compare(a, b));
    body.append(...[...known, ...missing].map(([, row]) => row));
  });
}
let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details:not([open])")];
  for (const part of opened) part.open = true;
});
addEventListener("afterprint", () => { for (const part of opened) part.open = false; });
