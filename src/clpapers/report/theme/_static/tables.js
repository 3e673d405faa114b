// A table that is wider than its place shows each row as a card: its name, then its cells, each below its heading.
const fit = (box) => {
  const table = box.querySelector("table");
  box.classList.remove("stacked");
  box.classList.toggle("stacked", table.scrollWidth > box.clientWidth + 1);
};
for (const box of document.querySelectorAll(".pst-scrollable-table-container:has(> table)")) {
  const heads = [...box.querySelectorAll("thead tr:last-child th")].map((head) => head.textContent.trim());
  for (const row of box.querySelectorAll("tbody tr"))
    [...row.cells].forEach((cell, i) => {
      cell.dataset.head = heads[i] ?? "";
      cell.classList.toggle("blank", ["", "–"].includes(cell.textContent.trim()));
    });
  let width = 0;
  new ResizeObserver(() => {
    if (box.clientWidth && box.clientWidth !== width) fit(box);
    width = box.clientWidth;
  }).observe(box);
}
