// Live pages. Something was done (an audit row): regions with hx-trigger="ldfi:changed from:body"
// are fetched again. Something is armed: its counts are written where [data-progress=ID] shows them.
"use strict";

(() => {
  const regions = () => document.querySelectorAll('[hx-trigger*="ldfi:changed"]');
  if (!document.getElementById("now")) return;

  // Whoever is typing or has something unfolded is not to be disturbed: later, then.
  const busy = () =>
    [...regions()].some(
      (region) =>
        region.querySelector("details[open]:not([data-steady])") ||
        (region.contains(document.activeElement) && /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName))
    );

  let due = 0;
  const changed = () => {
    clearTimeout(due);
    due = setTimeout(() => {
      htmx.trigger(document.body, "ldfi:now");
      if (busy() || document.hidden) due = setTimeout(changed, 2000);
      else htmx.trigger(document.body, "ldfi:changed");
    }, 300);
  };

  const percent = (rate) => (rate === null ? "–" : `${Number((100 * rate).toPrecision(3))} %`);

  const write = (experiment) => {
    document.querySelectorAll("[data-progress]").forEach((element) => {
      if (element.dataset.progress !== experiment.id) return;
      const counts = experiment.counts;
      const arm = counts[element.dataset.arm];
      const field = element.dataset.field;
      if (field === "state") element.textContent = experiment.state;
      else if (arm && field === "failure_rate") element.textContent = percent(arm.failure_rate);
      else if (arm && field in arm) element.textContent = arm[field].toLocaleString();
      else if (field in counts) element.textContent = counts[field].toLocaleString();
    });
  };

  const source = new EventSource("/live");
  source.addEventListener("audit", changed);
  source.addEventListener("progress", (event) => {
    const experiments = JSON.parse(event.data);
    experiments.forEach(write);
    document.dispatchEvent(new CustomEvent("ldfi:progress", { detail: experiments }));
  });
  addEventListener("pagehide", () => source.close());
})();
