// The strip of *Now* chooses a window and asks *Was it us?*: drag over it and let go, or focus it,
// move with the arrow keys (Shift extends) and press Enter. Without this script the form asks.
"use strict";

(() => {
  const MINUTE = 60;
  const STEPS = { ArrowLeft: -5, ArrowDown: -5, ArrowRight: 5, ArrowUp: 5, PageDown: -60, PageUp: 60, Home: -1440, End: 1440 };
  const FIRST = 15; // minutes, the newest: where the arrow keys begin
  const DRAG = 5; // pixels: less is a press on what lies there

  let chosen = null; // {anchor, head}, in Unix seconds: the head is what Shift moves
  let drag = null; // {track, x, at}: where the pointer went down
  let dragged = false; // the click that ends a drag opens nothing
  let outdated = false; // what is new was kept back meanwhile

  const strip = () => document.getElementById("strip-window");
  const day = () => ({ since: Number(strip().dataset.since), until: Number(strip().dataset.until) });
  const span = () => ({ since: Math.min(chosen.anchor, chosen.head), until: Math.max(chosen.anchor, chosen.head) });
  const full = (at, round) => round(at / MINUTE) * MINUTE;

  const clock = (at) =>
    new Date(1000 * at).toLocaleTimeString("en-GB", {
      hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZone: strip().dataset.zone,
    });

  const show = () => {
    const card = strip().closest(".card");
    const words = document.getElementById("strip-words");
    card.toggleAttribute("data-choosing", chosen !== null);
    words.textContent = chosen ? `${clock(span().since)} to ${clock(span().until)}` : words.dataset.else;
    strip().setAttribute("aria-valuetext", words.textContent);
    if (!chosen) return;
    const { since, until } = day();
    card.style.setProperty("--from", String((span().since - since) / (until - since)));
    card.style.setProperty("--to", String((span().until - since) / (until - since)));
    strip().setAttribute("aria-valuenow", String(Math.round((chosen.head - since) / MINUTE)));
  };

  const choose = (anchor, head) => {
    const within = (at) => Math.min(day().until, Math.max(day().since, at));
    if (within(anchor) === within(head)) return;
    chosen = { anchor: within(anchor), head: within(head) };
    show();
  };

  const forget = () => {
    chosen = drag = null;
    if (strip()) show();
    if (outdated) htmx.trigger(document.body, "ldfi:changed");
    outdated = false;
  };

  const ask = () => {
    const stamp = (at) => `${new Date(1000 * at).toISOString().slice(0, 19)}Z`;
    const { since, until } = span();
    location.assign(`/was-it-us?since=${stamp(Math.floor(since))}&until=${stamp(Math.ceil(until))}`);
  };

  // By pointer. Only what is drawn is dragged over; the names beside it stay links.
  const trackOf = (event) => strip() && event.target.closest?.(".track, .hours");
  const timeAt = (track, x) => {
    const box = track.getBoundingClientRect();
    return day().since + ((x - box.left) / box.width) * (day().until - day().since);
  };

  document.addEventListener("pointerdown", (event) => {
    dragged = false;
    const track = trackOf(event);
    if (!track || !event.isPrimary || event.button !== 0) return;
    drag = { track, x: event.clientX, at: timeAt(track, event.clientX) };
  });
  document.addEventListener("pointermove", (event) => {
    if (!drag || !event.isPrimary) return;
    if (!dragged && Math.abs(event.clientX - drag.x) < DRAG) return;
    dragged = true;
    const here = timeAt(drag.track, event.clientX);
    choose(full(Math.min(drag.at, here), Math.floor), full(Math.max(drag.at, here), Math.ceil));
  });
  document.addEventListener("pointerup", () => {
    if (drag && dragged && chosen) ask();
    drag = null;
  });
  document.addEventListener("pointercancel", () => { if (drag) forget(); });
  document.addEventListener("dragstart", (event) => { if (trackOf(event)) event.preventDefault(); });
  document.addEventListener("click", (event) => {
    if (dragged && trackOf(event)) event.preventDefault();
  }, true);

  // By keyboard.
  document.addEventListener("focusin", (event) => {
    if (event.target !== strip() || chosen) return;
    const newest = full(day().until, Math.floor);
    choose(newest - FIRST * MINUTE, newest);
  });
  document.addEventListener("focusout", (event) => {
    const elsewhere = document.activeElement !== strip(); // not another window or tab
    if (event.target === strip() && elsewhere) forget();
  });
  document.addEventListener("keydown", (event) => {
    if (!chosen) return;
    if (event.key === "Escape") return drag ? forget() : document.activeElement.blur();
    if (event.target !== strip() || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === "Enter") return ask();
    const step = MINUTE * (STEPS[event.key] ?? 0);
    if (!step) return;
    event.preventDefault();
    const { anchor, head } = chosen;
    if (event.shiftKey) return choose(anchor, head + step === anchor ? head + 2 * step : head + step);
    const by = Math.min(Math.max(step, day().since - span().since), day().until - span().until);
    choose(anchor + by, head + by);
  });

  // What somebody is choosing from is not taken away.
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.target.id !== "live" || (!chosen && !drag)) return;
    event.detail.shouldSwap = false;
    outdated = true;
  });
  addEventListener("pageshow", (event) => { if (event.persisted) forget(); });
})();
