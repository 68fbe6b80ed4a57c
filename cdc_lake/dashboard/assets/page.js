// Draws the charts. A button switches between the first rows of a chart and all rows.
(() => {
  const { config, charts } = JSON.parse(document.getElementById("charts").textContent);
  const views = new Map();

  async function draw(element, all) {
    const { spec, show } = charts[element.id];
    const values = all || !show ? spec.data.values : spec.data.values.slice(0, show);
    // Vega-Lite logs a warning for a height by step beside a width that follows the page.
    const height = spec.height?.step ? spec.height.step * values.length : spec.height;
    const shown = { ...spec, width: "container", height, data: { values } };
    views.get(element)?.finalize();
    try {
      // `ast`: expressions are interpreted, not compiled, so that the page's policy can forbid eval.
      const options = { renderer: "svg", actions: false, ast: true, config };
      views.set(element, await vegaEmbed(element, shown, options));
      element.dataset.drawn = "yes";
    } catch (error) {
      element.textContent = `Cannot draw the chart: ${error.message}. The table below has its numbers.`;
    }
  }

  function toggle(button) {
    const { spec, show } = charts[button.getAttribute("aria-controls")];
    const all = button.getAttribute("aria-expanded") !== "true";
    button.setAttribute("aria-expanded", String(all));
    button.textContent = all ? `Show the first ${show}` : `Show all ${spec.data.values.length}`;
    draw(document.getElementById(button.getAttribute("aria-controls")), all);
  }

  document.querySelectorAll(".chart").forEach((element) => draw(element, false));
  document.querySelectorAll("[aria-controls]").forEach((button) => button.addEventListener("click", () => toggle(button)));
})();
