// One line that says what has happened; a screen reader reads it when it changes. The clock beside it ticks unheard.

function render({ model, el }) {
  const line = document.createElement("div");
  line.setAttribute("role", "status");
  line.dir = "auto";
  const clock = document.createElement("span");
  clock.className = "ipym-clock";
  clock.setAttribute("aria-hidden", "true");
  el.append(line, clock);
  const draw = () => {
    line.textContent = (model.get("failed") ? "⚠ " : "") + model.get("text");
    line.className = "ipym-status" + (model.get("failed") ? " ipym-failed" : "");
  };
  const tick = () => {
    clock.textContent = model.get("clock");
    clock.hidden = !model.get("clock");
  };
  model.on("change:text change:failed", draw);
  model.on("change:clock", tick);
  draw();
  tick();
  return () => {
    model.off("change:text change:failed", draw);
    model.off("change:clock", tick);
  };
}

export default { render };
