// A table of memories: one row each, picked by its key with the mouse or the keyboard, marked with a box.
// Every text is set as text, never as markup.

const cellText = (value, column) => {
  if (value === null || value === undefined) return "";
  return column.digits !== undefined && typeof value === "number" ? value.toFixed(column.digits) : String(value);
};

const compare = (a, b) => {
  const [noA, noB] = [a === null || a === undefined, b === null || b === undefined];
  if (noA || noB) return noA - noB;
  return typeof a === "number" && typeof b === "number" ? a - b : String(a) < String(b) ? -1 : String(a) > String(b) ? 1 : 0;
};

function render({ model, el }) {
  el.classList.add("ipym-hits");
  // A notebook in command mode would take arrows and letters for its own.
  el.dataset.lmSuppressShortcuts = "true";
  const table = document.createElement("table");
  const live = document.createElement("div");
  table.setAttribute("role", "grid");
  live.className = "ipym-live";
  live.setAttribute("aria-live", "polite");
  el.append(table, live);
  let order = null; // {name, down}; null: as given
  let focused = null; // key of the row that Tab reaches

  const rows = () => {
    const given = [...model.get("rows")];
    if (order === null) return given;
    const { name, down } = order;
    const empty = (row) => row[name] === null || row[name] === undefined;
    return given.sort((a, b) => (empty(a) || empty(b) || !down ? 1 : -1) * compare(a[name], b[name]));
  };
  const bodyRows = () => [...table.tBodies[0].rows];
  const send = (name, value) => {
    model.set(name, value);
    model.save_changes();
  };
  const select = (key) => {
    focused = key;
    send("selected", key);
  };
  const focus = (row) => {
    if (!row) return;
    focused = row.dataset.key;
    for (const each of bodyRows()) each.tabIndex = each === row ? 0 : -1;
    row.focus();
  };

  function drawSelection() {
    const selected = model.get("selected");
    const marked = new Set(model.get("marked"));
    for (const row of bodyRows()) {
      row.setAttribute("aria-selected", String(row.dataset.key === selected));
      const box = row.querySelector("input");
      if (box) box.checked = marked.has(row.dataset.key);
    }
    const all = table.querySelector("thead input");
    if (all) {
      all.checked = marked.size > 0 && marked.size === bodyRows().length;
      all.indeterminate = marked.size > 0 && !all.checked;
    }
  }

  function box(label, onChange) {
    const input = document.createElement("input");
    input.type = "checkbox";
    input.setAttribute("aria-label", label);
    input.addEventListener("change", () => onChange(input.checked));
    input.addEventListener("click", (event) => event.stopPropagation());
    return input;
  }

  function drawHead(columns) {
    const row = document.createElement("tr");
    if (model.get("markable")) {
      const cell = document.createElement("th");
      cell.scope = "col";
      cell.append(box("mark all", (on) => send("marked", on ? model.get("rows").map((each) => each.key) : [])));
      row.append(cell);
    }
    for (const column of columns) {
      const cell = document.createElement("th");
      const button = document.createElement("button");
      const sorted = order && order.name === column.name;
      cell.scope = "col";
      cell.className = column.digits === undefined ? "" : "ipym-number";
      cell.setAttribute("aria-sort", !sorted ? "none" : order.down ? "descending" : "ascending");
      button.type = "button";
      button.textContent = column.label + (!sorted ? "" : order.down ? " ▼" : " ▲");
      button.title = "sort by " + column.label;
      button.addEventListener("click", () => {
        order = !sorted ? { name: column.name, down: column.digits !== undefined }
          : { name: column.name, down: !order.down };
        draw();
        [...table.tHead.querySelectorAll("button")].find((each) => each.title === button.title).focus();
        live.textContent = "sorted by " + column.label + (order.down ? ", descending" : ", ascending");
      });
      cell.append(button);
      row.append(cell);
    }
    return row;
  }

  function drawRow(data, columns) {
    const row = document.createElement("tr");
    row.dataset.key = data.key;
    row.tabIndex = -1;
    if (model.get("markable")) {
      const cell = document.createElement("td");
      cell.setAttribute("role", "gridcell");
      cell.append(box("mark " + data.key, (on) => {
        const others = model.get("marked").filter((key) => key !== data.key);
        send("marked", on ? [...others, data.key] : others);
      }));
      row.append(cell);
    }
    for (const column of columns) {
      const cell = document.createElement("td");
      cell.setAttribute("role", "gridcell");
      cell.dir = "auto";
      cell.className = column.digits !== undefined ? "ipym-number" : column.wide ? "ipym-wide" : "";
      const inside = document.createElement("div");
      inside.textContent = cellText(data[column.name], column);
      cell.append(inside);
      row.append(cell);
    }
    row.addEventListener("click", () => {
      focus(row);
      select(data.key);
    });
    return row;
  }

  function draw() {
    const columns = model.get("columns");
    const shown = rows();
    const hadFocus = table.tBodies[0]?.contains(document.activeElement);
    const head = document.createElement("thead");
    const body = document.createElement("tbody");
    head.append(drawHead(columns));
    body.append(...shown.map((data) => drawRow(data, columns)));
    table.replaceChildren(head, body);
    table.setAttribute("aria-label", model.get("label"));
    table.hidden = shown.length === 0;
    if (!shown.some((data) => data.key === focused)) focused = shown.length ? shown[0].key : null;
    const row = bodyRows().find((each) => each.dataset.key === focused);
    if (row) row.tabIndex = 0;
    if (row && hadFocus) row.focus();
    drawSelection();
  }

  table.addEventListener("keydown", (event) => {
    const row = event.target.closest("tbody tr");
    if (!row) return;
    const all = bodyRows();
    const at = all.indexOf(row);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (to !== undefined) {
      focus(all[Math.max(0, Math.min(all.length - 1, to))]);
    } else if ((event.key === "Enter" || event.key === " ") && event.target === row) {
      select(row.dataset.key);
    } else {
      return;
    }
    // The notebook has uses of its own for these keys.
    event.preventDefault();
    event.stopPropagation();
  });

  const redraw = () => {
    draw();
    live.textContent = model.get("label");
  };
  model.on("change:rows", redraw);
  model.on("change:columns", draw);
  model.on("change:selected", drawSelection);
  model.on("change:marked", drawSelection);
  draw();
  return () => {
    model.off("change:rows", redraw);
    model.off("change:columns", draw);
    model.off("change:selected", drawSelection);
    model.off("change:marked", drawSelection);
  };
}

export default { render };
