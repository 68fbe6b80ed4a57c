// Draws the charts in the reader's colour scheme, again when the scheme changes, and shows more bars on demand.
(() => {
  const { config, charts } = JSON.parse(document.getElementById("charts").textContent);
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const drawn = new Map();

  async function draw(name) {
    const element = document.getElementById(name);
    drawn.get(name)?.finalize();
    // `ast`: expressions are interpreted, not compiled, so the page's policy can forbid eval.
    const result = await vegaEmbed(element, sized(name), {
      mode: "vega-lite", renderer: "svg", actions: false, ast: true,
      config: config[scheme.matches ? "dark" : "light"],
    });
    drawn.set(name, result);
    element.dataset.drawn = "yes";
  }

  // The chart's specification with as many bars as its button says, and the height they need.
  function sized(name) {
    const button = document.querySelector(`[data-more="${name}"]`);
    if (!button) return charts[name];
    const shown = Number(isOpen(button) ? button.dataset.all : button.dataset.few);
    return { ...charts[name], params: [{ name: "shown", value: shown }], height: shown * Number(button.dataset.step) };
  }

  const isOpen = (button) => button.getAttribute("aria-expanded") === "true";

  function toggle(button) {
    button.setAttribute("aria-expanded", String(!isOpen(button)));
    button.textContent = isOpen(button) ? `Show the first ${button.dataset.few}` : `Show all ${button.dataset.all}`;
    redraw(button.dataset.more);
  }

  function failed(name, error) {
    const element = document.getElementById(name);
    element.textContent = `The chart could not be drawn (${error.message}); the table below holds its numbers.`;
  }

  const redraw = (name) => draw(name).catch((error) => failed(name, error));
  const drawAll = () => Object.keys(charts).forEach(redraw);
  scheme.addEventListener("change", drawAll);
  document.querySelectorAll("[data-more]").forEach((button) => button.addEventListener("click", () => toggle(button)));
  drawAll();
})();
