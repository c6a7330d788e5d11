// One line that says what has happened; a screen reader reads it when it changes.

function render({ model, el }) {
  const line = document.createElement("div");
  line.setAttribute("role", "status");
  line.dir = "auto";
  el.append(line);
  const draw = () => {
    line.textContent = (model.get("failed") ? "⚠ " : "") + model.get("text");
    line.className = "ipym-status" + (model.get("failed") ? " ipym-failed" : "");
  };
  model.on("change", draw);
  draw();
  return () => model.off("change", draw);
}

export default { render };
