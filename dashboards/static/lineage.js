// Draws a lineage graph (macros_detail.html, dashboards/lineage_graph.py). Points are grouped by the
// service that calls; services can be closed, and are at first where there are many points. What a
// point is shows in its shape and its words as well as in its colour. The table beside the picture
// says the same and is what the keyboard reaches. Labels are text on a canvas, never markup.
"use strict";

(() => {
  const SHAPES = {
    critical: "cut-rectangle", injected: "cut-rectangle", failed: "cut-rectangle",
    fallback: "polygon", "stood-in": "polygon",
    optional: "round-rectangle", same: "round-rectangle",
    untested: "rectangle", "not-reached": "rectangle",
  };
  const COLOURS = {
    critical: "red", injected: "red", failed: "red",
    fallback: "accent", "stood-in": "accent",
    optional: "green", same: "edge",
    untested: "muted", "not-reached": "muted",
  };
  const SOFT = { red: "red-soft", accent: "blue-soft", green: "green-soft", muted: "surface", edge: "surface" };
  const DASHED = new Set(["untested", "not-reached"]);
  const WORDS = { "stood-in": "stood in", "not-reached": "not reached", injected: "made to fail", same: "" };
  const LETTERS = 30;
  const LEAST_HIGH = 140;
  const MOST_HIGH = 560;

  const cut = (text) => {
    const letters = [...text];
    return letters.length > LETTERS ? `${letters.slice(0, LETTERS - 1).join("")}…` : text;
  };
  const share = (value) => (value >= 0.995 ? "100 %" : value > 0 && value < 0.01 ? "< 1 %" : `${Math.round(100 * value)} %`);

  // Colours of the sheet, resolved for the theme that is on.
  const palette = () => {
    const probe = document.body.appendChild(document.createElement("span"));
    const found = {};
    for (const name of ["text", "muted", "line", "edge", "accent", "red", "green", "surface", "raised", "red-soft", "green-soft", "blue-soft"]) {
      probe.style.color = `var(--${name})`;
      found[name] = getComputedStyle(probe).color;
    }
    probe.remove();
    return found;
  };

  const styles = () => {
    const colours = palette();
    const by = (names) => (element) => colours[names(element.data("standing"))];
    const strong = by((standing) => COLOURS[standing] || "edge");
    const soft = by((standing) => SOFT[COLOURS[standing] || "edge"]);
    const font = getComputedStyle(document.body).fontFamily;
    return [
      { selector: "node", style: {
        "font-family": font, "font-size": 12, color: colours.text, label: "data(label)", "text-wrap": "wrap",
        "text-max-width": 230, "line-height": 1.25, "text-valign": "center", "text-halign": "center", width: 224, height: 44,
        shape: "round-rectangle", "background-color": soft, "border-color": strong, "border-width": 1.5 } },
      { selector: "node.point", style: {
        shape: (element) => SHAPES[element.data("standing")] || "round-rectangle",
        "shape-polygon-points": "-0.9 -1 1 -1 0.9 1 -1 1",
        "border-style": (element) => (DASHED.has(element.data("standing")) ? "dashed" : "solid") } },
      { selector: "node.marked", style: { "border-width": 5, "border-color": colours.red, "border-style": "solid", "font-weight": 700 } },
      { selector: "node.request", style: {
        width: 84, height: 34, shape: "ellipse", "background-color": colours.raised, "border-color": colours.edge } },
      { selector: "node.service", style: {
        shape: "round-rectangle", "background-color": colours.raised, "background-opacity": 0.55, "border-color": colours.line,
        "border-width": 1, "text-valign": "top", "text-halign": "center", "font-weight": 600, color: colours.muted, padding: 12 } },
      { selector: "node.closed", style: {
        width: 190, height: 48, shape: "round-rectangle", "background-opacity": 1, "border-width": 2, "border-style": "double",
        "border-color": strong, color: colours.text, "text-valign": "center" } },
      { selector: "edge", style: {
        width: "data(width)", "line-color": colours.edge, "line-opacity": 0.6, "curve-style": "bezier",
        "target-arrow-shape": "triangle", "target-arrow-color": colours.edge, "arrow-scale": 0.8 } },
      { selector: "edge.fault", style: { "line-color": colours.red, "target-arrow-color": colours.red, "line-style": "dashed" } },
      { selector: "node:selected", style: { "border-color": colours.accent, "border-width": 4 } },
    ];
  };

  // What is to be seen while these services are closed.
  const elements = (graph, closed) => {
    const service = new Map(graph.services.map((each) => [each.id, each]));
    const home = new Map(graph.points.map((each) => [each.id, each]));
    const many = graph.services.length > 1;
    const seen = (id) => (home.has(id) && closed.has(home.get(id).service) ? home.get(id).service : id);
    const nodes = [{ data: { id: "request", label: "request", standing: "same" }, classes: "request" }];
    for (const each of graph.services) {
      const inside = graph.points.filter((point) => point.service === each.id);
      if (closed.has(each.id)) {
        const marked = inside.some((point) => point.marks.length);
        const what = `${inside.length} point${inside.length === 1 ? "" : "s"}`;
        const worst = WORDS[each.standing] ?? each.standing;
        nodes.push({
          data: { id: each.id, label: `${cut(each.name)}\n${[what, worst].filter(Boolean).join(" · ")}`, standing: each.standing },
          classes: `service closed${marked ? " marked" : ""}`,
        });
      } else if (many) {
        nodes.push({ data: { id: each.id, label: cut(each.name), standing: each.standing }, classes: "service" });
      }
    }
    for (const point of graph.points) {
      if (closed.has(point.service)) continue;
      const said = [WORDS[point.standing] ?? point.standing, graph.shares ? share(point.share) : ""].filter(Boolean);
      const fault = point.marks.length ? `⚡ ${point.marks.join(", ")} · ` : "";
      nodes.push({
        data: {
          id: point.id, point: point.point, standing: point.standing,
          label: `${cut(point.label)}\n${fault}${said.join(" · ")}`,
          ...(many ? { parent: point.service } : {}),
        },
        classes: `point${point.marks.length ? " marked" : ""}`,
      });
    }
    const edges = new Map();
    for (const [above, below] of graph.edges) {
      const from = seen(above), to = seen(below), point = home.get(below);
      if (from === to && closed.has(to)) continue;
      const key = `${from} ${to}`;
      const known = edges.get(key) || { source: from, target: to, share: 0, fault: false };
      known.share = Math.max(known.share, point.share);
      known.fault = known.fault || (point.marks.length > 0 && to === below);
      edges.set(key, known);
    }
    const lines = [...edges.values()].map((edge) => ({
      data: { id: `${edge.source}-${edge.target}`, source: edge.source, target: edge.target, width: graph.shares ? 1 + 6 * edge.share : 1.5 },
      classes: edge.fault ? "fault" : "",
    }));
    return [...nodes, ...lines];
  };

  const draw = (figure) => {
    const canvas = figure.querySelector(".canvas");
    const graph = JSON.parse(figure.querySelector('script[type="application/json"]').textContent);
    const requestClass = figure.dataset.requestClass;
    graph.shares = requestClass !== undefined;
    const everything = graph.services.map((each) => each.id);
    const marked = new Set(graph.points.filter((each) => each.marks.length).map((each) => each.service));
    const closed = new Set(graph.collapse ? everything.filter((each) => !marked.has(each)) : []);
    const cy = cytoscape({
      container: canvas, style: styles(), elements: [], minZoom: 0.05, maxZoom: 2.5,
      userZoomingEnabled: false, boxSelectionEnabled: false, autoungrabify: true, textureOnViewport: true, pixelRatio: "auto",
    });

    // As high as it takes, within bounds.
    const fit = () => {
      const box = cy.elements().boundingBox();
      const scale = Math.min(1, Math.max(0.5, (canvas.clientWidth - 36) / box.w));
      canvas.style.height = `${Math.min(MOST_HIGH, Math.max(LEAST_HIGH, box.h * scale + 44))}px`;
      cy.resize();
      cy.fit(undefined, 18);
      if (cy.zoom() > 1) { cy.zoom(1); cy.center(); }
      // Too small to be read: rather begin at the request and let people pan.
      if (cy.zoom() < 0.5) {
        cy.zoom(0.5);
        const start = cy.getElementById("request").position();
        cy.pan({ x: 40 - box.x1 * 0.5, y: canvas.clientHeight / 2 - start.y * 0.5 });
      }
    };
    const lay = () => {
      const began = performance.now();
      cy.batch(() => { cy.elements().remove(); cy.add(elements(graph, closed)); });
      cy.layout({ name: "dagre", rankDir: "LR", nodeSep: 12, rankSep: 60, edgeSep: 6, ranker: "longest-path", animate: false, fit: false }).run();
      fit();
      figure.dataset.drawnIn = String(Math.round(performance.now() - began));
    };
    lay();

    const history = figure.parentElement.querySelector(".point");
    cy.on("tap", "node.service", (event) => {
      const id = event.target.id();
      if (closed.has(id)) closed.delete(id);
      else closed.add(id);
      lay();
    });
    cy.on("tap", "node.point", (event) => {
      if (!history || requestClass === undefined) return;
      const query = new URLSearchParams({ request_class: requestClass, point: event.target.data("point") });
      htmx.ajax("GET", `/point?${query}`, { target: history, swap: "innerHTML" });
    });
    cy.on("mouseover", "node", (event) => {
      canvas.title = event.target.data("point") || "";
      canvas.classList.toggle("over", event.target.hasClass("service") || (requestClass !== undefined && event.target.hasClass("point")));
    });
    cy.on("mouseout", "node", () => { canvas.title = ""; canvas.classList.remove("over"); });

    const zoom = (factor) => cy.zoom({ level: cy.zoom() * factor, renderedPosition: { x: canvas.clientWidth / 2, y: canvas.clientHeight / 2 } });
    const actions = {
      in: () => zoom(1.3),
      out: () => zoom(1 / 1.3),
      fit: () => cy.fit(undefined, 18),
      open: () => { closed.clear(); lay(); },
      close: () => { everything.forEach((each) => closed.add(each)); lay(); },
    };
    figure.querySelectorAll("[data-do]").forEach((button) => {
      if (graph.services.length < 2 && ["open", "close"].includes(button.dataset.do)) button.remove();
      button.addEventListener("click", () => actions[button.dataset.do]());
    });
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      zoom(event.deltaY < 0 ? 1.15 : 1 / 1.15);
    }, { passive: false });
    const repaint = () => cy.style(styles());
    document.addEventListener("ldfi:theme", repaint);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
    figure.querySelector("details.as-table").open = false;
    figure.classList.add("drawn");
    figure.lineage = cy;
  };

  document.querySelectorAll("[data-lineage]").forEach(draw);
})();
