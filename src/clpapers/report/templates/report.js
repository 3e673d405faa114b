// Sorting and filtering. Without this file all tables are still there, in the papers' order.
"use strict";

function key(row, column) {
  const cell = [...row.cells][column];
  const text = cell.dataset.value ?? cell.textContent.trim();
  const plain = text.replaceAll("−", "-").replace(/(\d),(?=\d{3})/g, "$1");
  const number = plain.startsWith("∞") ? Infinity : parseFloat(plain);
  return { text, number };
}

function compare(a, b) {
  if (!Number.isNaN(a.number) && !Number.isNaN(b.number)) return a.number - b.number;
  return a.text.localeCompare(b.text, "en", { numeric: true });
}

// What is no number stands below those that are, whichever way they are sorted.
function sort(table, heading) {
  const column = Number(heading.dataset.column);
  const descending = heading.getAttribute("aria-sort") === "ascending";
  for (const other of table.querySelectorAll("[aria-sort]")) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
  const body = table.tBodies[0];
  const keyed = [...body.rows].map((row) => ({ row, key: key(row, column) }));
  const numeric = keyed.some((each) => !Number.isNaN(each.key.number));
  keyed.sort((a, b) => {
    const without = numeric ? Number.isNaN(a.key.number) - Number.isNaN(b.key.number) : 0;
    return without || compare(a.key, b.key) * (descending ? -1 : 1);
  });
  body.append(...keyed.map((each) => each.row));
}

for (const table of document.querySelectorAll("table.sortable")) {
  for (const heading of table.querySelectorAll("th[data-column]")) {
    if (!heading.textContent.trim()) continue; // a button needs a name
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    button.addEventListener("click", () => sort(table, heading));
    heading.append(button);
  }
}

const form = document.querySelector(".filter");
const rows = [...document.querySelectorAll(".filtered tbody tr")];
if (form && rows.length) {
  const told = form.querySelector("output");
  const apply = () => {
    const text = form.elements.text.value.trim().toLowerCase();
    const verdict = form.elements.verdict.value;
    const active = Boolean(text || verdict);
    for (const row of rows) {
      const fits = row.textContent.toLowerCase().includes(text) && (!verdict || row.dataset.verdict === verdict);
      row.hidden = !fits;
    }
    for (const closed of document.querySelectorAll("details.folded")) {
      closed.open = active && closed.querySelector(".filtered tbody tr:not([hidden])") !== null;
      closed.hidden = active && !closed.open;
    }
    for (const section of document.querySelectorAll("main > section")) {
      section.hidden = active && !section.querySelector(".filtered tbody tr:not([hidden])");
    }
    told.textContent = active ? `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows` : "";
  };
  for (const event of ["input", "change"]) form.addEventListener(event, apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
}

// What is cut off at the right fades out there; what is wider than the page says so above.
function cue(box) {
  const rest = box.scrollWidth - box.clientWidth - box.scrollLeft;
  box.classList.toggle("wide", box.scrollWidth > box.clientWidth + 1);
  box.classList.toggle("cut", rest > 1);
}
const watched = new ResizeObserver((entries) => entries.forEach((each) => cue(each.target)));
for (const box of document.querySelectorAll(".scroll")) {
  box.addEventListener("scroll", () => cue(box), { passive: true });
  cue(box);
  watched.observe(box); // and when a closed part opens, or the window changes
}

// A link to something within a closed part opens it.
function open() {
  const place = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const closed = place && place.closest("details");
  if (closed) {
    closed.open = true;
    place.scrollIntoView();
  }
}
addEventListener("hashchange", open);
open();
