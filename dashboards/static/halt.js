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
    hold.sent = true;
    hint("Halting…");
    const form = document.getElementById("halting");
    form.elements.held.value = location.pathname;
    form.submit();
  };

  const begin = (event) => {
    if (hold) return;
    hint("");
    const button = buttonOf(event);
    button.classList.add("holding");
    hold = { button, began: event.timeStamp, due: setTimeout(halt, HOLD) };
  };

  // Ends the hold and tells whether it was a short press, by when the keys and fingers moved: a
  // page that is slow to hear of it makes no short press long.
  const end = (event) => {
    if (!hold) return false;
    const { button, began, due } = hold;
    const lasted = event.timeStamp - began;
    clearTimeout(due);
    if (lasted >= HOLD && !hold.sent) halt();
    hold = null;
    button.classList.remove("holding");
    if (lasted >= SHORT && lasted < HOLD) hint("Nothing has happened: hold it for a second. A short press asks why first.");
    htmx.trigger(document.body, "ldfi:now"); // what was kept back meanwhile
    return lasted < SHORT;
  };

  let short = true; // a click without a press, by a screen reader, say, is a short one
  document.addEventListener("pointerdown", (event) => {
    short = true;
    if (buttonOf(event) && event.isPrimary && event.button === 0) begin(event);
  });
  document.addEventListener("pointerup", (event) => {
    if (hold) short = end(event);
    setTimeout(() => { short = true; }, SHORT); // the click of this press has come by then, if one comes
  });
  document.addEventListener("pointercancel", end);
  document.addEventListener("pointerout", (event) => {
    const button = buttonOf(event);
    if (!hold || !button || event.pointerType !== "mouse" || button.contains(event.relatedTarget)) return;
    end(event);
    short = false;
  });
  document.addEventListener("click", (event) => {
    if (buttonOf(event) && !short) event.preventDefault();
  });
  document.addEventListener("contextmenu", (event) => { if (hold) event.preventDefault(); });

  const presses = (event) => buttonOf(event) && (event.key === "Enter" || event.key === " ");
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") end(event);
    if (!presses(event)) return;
    event.preventDefault();
    if (!event.repeat) begin(event);
  });
  document.addEventListener("keyup", (event) => {
    if (!presses(event)) return;
    event.preventDefault();
    if (end(event)) buttonOf(event).form.requestSubmit();
  });
  addEventListener("blur", end);

  // The button is not taken away from under the finger that holds it.
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (hold && event.detail.target.id === "now") event.detail.shouldSwap = false;
  });
})();
