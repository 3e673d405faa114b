// The table of runs. The field finds lines that have all of its words; a place, as an address names one, finds its own.
const MOST = 200;
const [field, found, table] = ["#run-filter", "#run-count", "#run-list"].map((name) => document.querySelector(name));
const lines = RUNS.rows.map(([place, seed, values, file]) => [place, seed, values, ...RUNS.files[file]]);
const texts = lines.map((line) => line.join(" ").toLowerCase());
const row = (cells, kind) => {
  const made = document.createElement("tr");
  cells.forEach((cell, i) => {
    const made_cell = made.appendChild(document.createElement(kind));
    made_cell.textContent = cell;
    made_cell.dataset.head = RUNS.heads[i];
  });
  return made;
};
const show = () => {
  const asked = field.value.trim(), words = asked.toLowerCase().split(/\s+/);
  const own = lines.filter((line) => line[0] === asked);
  const shown = own.length ? own : lines.filter((line, i) => words.every((word) => texts[i].includes(word)));
  table.tBodies[0].replaceChildren(...shown.slice(0, MOST).map((line) => row(line, "td")));
  const more = shown.length > MOST ? `; the first ${MOST} are shown` : "";
  found.textContent = `${shown.length.toLocaleString("en")} of ${lines.length.toLocaleString("en")} lines${more}`;
};
const follow = () => {
  field.value = decodeURIComponent(location.hash.slice(1));
  show();
};
table.tHead.replaceChildren(row(RUNS.heads, "th"));
field.addEventListener("input", show);
addEventListener("hashchange", follow);
follow();
