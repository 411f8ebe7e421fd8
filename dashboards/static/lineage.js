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
  const WORDS = {
    critical: "hurts alone", optional: "survived alone", fallback: "stands in", untested: "never tried",
    "stood-in": "stood in", "not-reached": "not reached", injected: "made to fail", same: "",
  };
  const WIDE = { letters: 30, width: 224, gap: 60, service: 190 };
  const NARROW = { letters: 21, width: 164, gap: 28, service: 164 };
  const HEIGHT = 44;
  const OPENED = 4;  // services that are opened for what is looked for
  const MARGIN = 14;
  const TITLE = 16;
  const MANY = 40;
  const LEGIBLE = { open: 0.75, closed: 0.5 };
  const LEAST_HIGH = 140;
  const MOST_HIGH = 1000;

  const cut = (text, most) => {
    const letters = [...text];
    return letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : text;
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

  const styles = (size, many) => {
    const colours = palette();
    const by = (names) => (element) => colours[names(element.data("standing"))];
    const strong = by((standing) => COLOURS[standing] || "edge");
    const soft = by((standing) => SOFT[COLOURS[standing] || "edge"]);
    const font = getComputedStyle(document.body).fontFamily;
    return [
      { selector: "node", style: {
        "font-family": font, "font-size": 12, color: colours.text, label: "data(label)", "text-wrap": "wrap",
        "text-max-width": size.width + 6, "line-height": 1.25, "text-valign": "center", "text-halign": "center", width: size.width, height: HEIGHT,
        shape: "round-rectangle", "background-color": soft, "border-color": strong, "border-width": 1.5 } },
      { selector: "node.point", style: {
        shape: (element) => SHAPES[element.data("standing")] || "round-rectangle",
        "shape-polygon-points": "-0.9 -1 1 -1 0.9 1 -1 1",
        "border-style": (element) => (DASHED.has(element.data("standing")) ? "dashed" : "solid") } },
      { selector: "node.pale", style: { opacity: 0.25 } },
      { selector: "node.marked", style: { "border-width": 5, "border-color": colours.red, "border-style": "solid", "font-weight": 700 } },
      { selector: "node.request", style: {
        width: 84, height: 34, shape: "ellipse", "background-color": colours.raised, "border-color": colours.edge } },
      { selector: "node.service", style: {
        shape: "round-rectangle", "background-color": colours.raised, "background-opacity": 0.55, "border-color": colours.line,
        "border-width": 1, "text-valign": "top", "text-halign": "center", "font-weight": 600, color: colours.muted, padding: MARGIN, "text-margin-y": TITLE, "text-events": "yes" } },
      { selector: "node.closed", style: {
        width: size.service, height: 48, "font-size": 16, shape: "round-rectangle", "background-opacity": 1, "border-width": 2, "border-style": "double",
        "border-color": strong, color: colours.text, "text-valign": "center", "text-margin-y": 0, padding: 0 } },
      { selector: "edge", style: {
        width: "data(width)", "line-color": colours.edge, "line-opacity": 0.5, "curve-style": many ? "straight" : "bezier",
        "target-arrow-shape": "triangle", "target-arrow-color": colours.edge, "arrow-scale": 0.8 } },
      // Everything is to the right of the request: so its lines do not run behind what they pass.
      { selector: 'edge[source = "request"]', style: { "source-endpoint": "90deg", "target-endpoint": "270deg" } },
      { selector: "edge.near", style: { "line-color": colours.accent, "target-arrow-color": colours.accent, "line-opacity": 1, "z-index": 9 } },
      { selector: "edge.fault", style: { "line-color": colours.red, "target-arrow-color": colours.red, "line-style": "dashed" } },
      { selector: "node:selected", style: { "border-color": colours.accent, "border-width": 4 } },
    ];
  };

  // What is to be seen while these services are closed.
  const elements = (graph, closed, size) => {
    const service = new Map(graph.services.map((each) => [each.id, each]));
    const home = new Map(graph.points.map((each) => [each.id, each]));
    const many = graph.services.length > 1 || closed.size > 0;
    const seen = (id) => (home.has(id) && closed.has(home.get(id).service) ? home.get(id).service : id);
    const nodes = [{ data: { id: "request", label: "request", standing: "same" }, classes: "request" }];
    for (const each of graph.services) {
      const inside = graph.points.filter((point) => point.service === each.id);
      if (closed.has(each.id)) {
        const marked = inside.some((point) => point.marks.length);
        const what = `${inside.length} point${inside.length === 1 ? "" : "s"}`;
        const worst = WORDS[each.standing] ?? each.standing;
        nodes.push({
          data: { id: each.id, label: `${cut(each.name, size.letters - 10)}\n${[what, worst].filter(Boolean).join(" · ")}`, standing: each.standing },
          classes: `service closed${marked ? " marked" : ""}`,
        });
      } else if (many) {
        nodes.push({ data: { id: each.id, label: cut(each.name, size.letters - 4), standing: each.standing }, classes: "service" });
      }
    }
    for (const point of graph.points) {
      if (closed.has(point.service)) continue;
      const said = [WORDS[point.standing] ?? point.standing, graph.shares ? share(point.share) : ""].filter(Boolean);
      const fault = point.marks.length ? `⚡ ${point.marks.join(", ")} · ` : "";
      nodes.push({
        data: {
          id: point.id, point: point.point, standing: point.standing,
          label: `${cut(point.label, size.letters)}\n${fault}${said.join(" · ")}`,
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
      data: { id: `${edge.source}-${edge.target}`, source: edge.source, target: edge.target, width: graph.shares ? 1 + 4 * edge.share : 1.5 },
      classes: edge.fault ? "fault" : "",
    }));
    return [...nodes, ...lines];
  };

  // Positions by dagre, of boxes of these sizes: id → {x, y}, and how large it all is.
  const layered = (boxes, lines, size) => {
    const ids = new Set(boxes.map((box) => box.id));
    const kept = lines.filter(([from, to]) => from !== to && ids.has(from) && ids.has(to));
    const board = cytoscape({
      headless: true, styleEnabled: true,
      style: [{ selector: "node", style: { width: "data(w)", height: "data(h)", shape: "rectangle" } }],
      elements: [
        ...boxes.map(({ id, w, h }) => ({ data: { id, w, h } })),
        ...kept.map(([source, target], at) => ({ data: { id: `line${at}`, source, target } })),
      ],
    });
    board.layout({ name: "dagre", rankDir: "LR", nodeSep: 14, rankSep: size.gap, edgeSep: 6, ranker: boxes.length > MANY ? "longest-path" : "network-simplex", animate: false, fit: false }).run();
    const at = new Map(board.nodes().map((node) => [node.id(), { ...node.position() }]));
    const box = board.elements().boundingBox({ includeOverlays: false });
    board.destroy();
    return { at, w: box.w, h: box.h, x: box.x1, y: box.y1 };
  };

  // The inside of an open service: by who calls whom, or stacked where nobody calls anybody.
  const inside = (points, lines, size) => {
    const mine = new Set(points.map((point) => point.id));
    const own = lines.filter(([from, to]) => mine.has(from) && mine.has(to) && from !== to);
    if (own.length) {
      return layered(points.map(({ id }) => ({ id, w: size.width, h: HEIGHT })), own, size);
    }
    const rows = Math.max(6, Math.ceil(Math.sqrt(3 * points.length)));
    const columns = Math.ceil(points.length / rows);
    const at = new Map(points.map((point, place) => [point.id, {
      x: Math.floor(place / rows) * (size.width + 16), y: (place % rows) * (HEIGHT + 12),
    }]));
    const [x, y] = [-size.width / 2, -HEIGHT / 2];
    return { at, x, y, w: columns * (size.width + 16) - 16, h: Math.min(rows, points.length) * (HEIGHT + 12) - 12 };
  };

  // Services by dagre, and the points of each that is open within it. So boxes never overlap, and
  // it takes no longer for more points than there are services.
  const positions = (graph, closed, size) => {
    const home = new Map(graph.points.map((point) => [point.id, point.service]));
    const request = { id: "request", w: 84, h: 34 };
    if (graph.services.length === 1 && !closed.size) {
      return layered([request, ...graph.points.map(({ id }) => ({ id, w: size.width, h: HEIGHT }))], graph.edges, size).at;
    }
    const interiors = new Map();
    const boxes = [request];
    for (const { id } of graph.services) {
      if (closed.has(id)) {
        boxes.push({ id, w: size.service, h: 48 });
        continue;
      }
      const within = inside(graph.points.filter((point) => point.service === id), graph.edges, size);
      interiors.set(id, within);
      boxes.push({ id, w: within.w + 2 * MARGIN, h: within.h + 2 * MARGIN + TITLE });
    }
    const between = new Map();
    for (const [from, to] of graph.edges) {
      const line = [home.get(from) ?? from, home.get(to)];
      between.set(line.join(" "), line);
    }
    const outer = layered(boxes, [...between.values()], size).at;
    const at = new Map(outer);
    for (const [id, within] of interiors) {
      const middle = outer.get(id);
      const left = middle.x - within.w / 2, top = middle.y - within.h / 2 + TITLE / 2;
      within.at.forEach((spot, point) => at.set(point, { x: left + spot.x - within.x, y: top + spot.y - within.y }));
      at.delete(id);
    }
    return at;
  };

  const draw = (figure) => {
    const canvas = figure.querySelector(".canvas");
    const graph = JSON.parse(figure.querySelector('script[type="application/json"]').textContent);
    const requestClass = figure.dataset.requestClass;
    graph.shares = requestClass !== undefined;
    const everything = graph.services.map((each) => each.id);
    const marked = new Set(graph.points.filter((each) => each.marks.length).map((each) => each.service));
    const closed = new Set(graph.collapse ? everything.filter((each) => !marked.has(each)) : []);
    const many = graph.edges.length > 150;
    const size = canvas.clientWidth < 520 ? NARROW : WIDE;
    const cy = cytoscape({
      container: canvas, style: styles(size, many), elements: [], minZoom: 0.05, maxZoom: 2.5,
      userZoomingEnabled: false, boxSelectionEnabled: false, autoungrabify: true, textureOnViewport: true, pixelRatio: "auto",
    });

    // As high as it takes, within bounds.
    const fit = () => {
      const box = cy.nodes().boundingBox({ includeLabels: false });
      const legible = closed.size === everything.length ? LEGIBLE.closed : LEGIBLE.open;
      const scale = Math.min(1, Math.max(legible, (canvas.clientWidth - 36) / box.w));
      canvas.style.height = `${Math.min(MOST_HIGH, Math.max(LEAST_HIGH, box.h * scale + 44))}px`;
      cy.resize();
      cy.fit(cy.nodes(), 18);
      if (cy.zoom() > 1) { cy.zoom(1); cy.center(); }
      // Too small to be read: rather begin at the request and let people pan.
      if (cy.zoom() < legible) {
        cy.zoom(legible);
        const start = cy.getElementById("request").position();
        cy.pan({ x: 24 - box.x1 * legible, y: canvas.clientHeight / 2 - start.y * legible });
      }
    };
    const lay = () => {
      const began = performance.now();
      const at = positions(graph, closed, size);
      cy.batch(() => {
        cy.elements().remove();
        cy.add(elements(graph, closed, size));
        cy.nodes().forEach((node) => { if (at.has(node.id())) node.position(at.get(node.id())); });
      });
      fit();
      figure.dataset.drawnIn = String(Math.round(performance.now() - began));
    };
    lay();

    // What is looked for is opened, marked and brought into sight; the table shows the same points.
    const find = figure.querySelector("[data-find]");
    const said = figure.querySelector("[data-found]");
    const rows = new Map([...figure.querySelectorAll("tr[data-point]")].map((row) => [row.dataset.point, row]));
    const search = () => {
      const wanted = find.value.trim().toLowerCase();
      const hits = graph.points.filter((point) =>
        wanted && [point.point, point.label, point.callee].some((text) => text.toLowerCase().includes(wanted)));
      const services = new Set(hits.map((point) => point.service));
      const hidden = services.size <= OPENED ? [...services].filter((service) => closed.delete(service)) : [];
      if (hidden.length) lay();
      const found = new Set([...hits.map((point) => point.id), ...services]);
      cy.nodes(".point, .closed").forEach((node) => { node.toggleClass("pale", Boolean(wanted) && !found.has(node.id())); });
      graph.points.forEach((point) => { rows.get(point.point).hidden = Boolean(wanted) && !found.has(point.id); });
      said.textContent = wanted ? `${hits.length} of ${graph.points.length} points` : "";
      if (!hits.length) return;
      const marked = cy.nodes(".point, .closed").filter((node) => !node.hasClass("pale"));
      cy.fit(marked, 60);
      if (cy.zoom() > 1) { cy.zoom(1); cy.center(marked); }
    };
    find?.addEventListener("input", search);

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
    cy.on("mouseover", "node", (event) => event.target.connectedEdges().addClass("near"));
    cy.on("mouseout", "node", () => {
      canvas.title = "";
      canvas.classList.remove("over");
      cy.edges().removeClass("near");
    });

    const zoom = (factor) => cy.zoom({ level: cy.zoom() * factor, renderedPosition: { x: canvas.clientWidth / 2, y: canvas.clientHeight / 2 } });
    const actions = {
      in: () => zoom(1.3),
      out: () => zoom(1 / 1.3),
      fit: () => cy.fit(cy.nodes(), 18),
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
    const repaint = () => cy.style(styles(size, many));
    document.addEventListener("ldfi:theme", repaint);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
    figure.querySelector("details.as-table").open = false;
    figure.classList.add("drawn");
    figure.lineage = cy;
  };

  document.querySelectorAll("[data-lineage]").forEach(draw);
})();
