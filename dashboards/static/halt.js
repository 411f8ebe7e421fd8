// Hold to halt: a second of holding, by pointer or by Enter or Space, halts everything at once. A
// short press opens the form that asks why, as without this script; what is between does nothing.
"use strict";

(() => {
  const HOLD = 1000; // milliseconds
  const SHORT = 350;
  let hold = null;

  const buttonOf = (event) => event.target.closest?.("#halt");
  let fading = 0;
  const hint = (words) => {
    const place = document.getElementById("halt-hint");
    if (!place) return;
    place.textContent = words;
    clearTimeout(fading);
    if (words) fading = setTimeout(() => hint(""), 8000);
  };

  const halt = () => {
    hint("Halting…");
    const form = document.getElementById("halting");
    form.elements.held.value = location.pathname;
    form.submit();
  };

  const begin = (button) => {
    if (hold) return;
    hint("");
    button.classList.add("holding");
    hold = { button, began: performance.now(), due: setTimeout(halt, HOLD) };
  };

  // Ends the hold and tells whether it was a short press.
  const end = () => {
    if (!hold) return false;
    const { button, began, due } = hold;
    const lasted = performance.now() - began;
    hold = null;
    clearTimeout(due);
    button.classList.remove("holding");
    if (lasted >= SHORT && lasted < HOLD) hint("Nothing has happened: hold it for a second. A short press asks why first.");
    htmx.trigger(document.body, "ldfi:now"); // what was kept back meanwhile
    return lasted < SHORT;
  };

  let short = true; // a click without a press, by a screen reader, say, is a short one
  document.addEventListener("pointerdown", (event) => {
    short = true;
    if (buttonOf(event) && event.isPrimary && event.button === 0) begin(buttonOf(event));
  });
  document.addEventListener("pointerup", () => { if (hold) short = end(); });
  document.addEventListener("pointercancel", end);
  document.addEventListener("pointerout", (event) => {
    const button = buttonOf(event);
    if (button && event.pointerType === "mouse" && !button.contains(event.relatedTarget)) end();
  });
  document.addEventListener("click", (event) => {
    if (buttonOf(event) && !short) event.preventDefault();
    short = true;
  });
  document.addEventListener("contextmenu", (event) => { if (hold) event.preventDefault(); });

  const presses = (event) => buttonOf(event) && (event.key === "Enter" || event.key === " ");
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") end();
    if (!presses(event)) return;
    event.preventDefault();
    if (!event.repeat) begin(buttonOf(event));
  });
  document.addEventListener("keyup", (event) => {
    if (!presses(event)) return;
    event.preventDefault();
    if (end()) buttonOf(event).form.requestSubmit();
  });
  addEventListener("blur", end);

  // The button is not taken away from under the finger that holds it.
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (hold && event.detail.target.id === "now") event.detail.shouldSwap = false;
  });
})();
