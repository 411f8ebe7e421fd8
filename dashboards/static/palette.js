// Above any page: the palette that finds anything (Ctrl-K), and the list of keys (?). What is found
// comes from the server, while one types; the field keeps the focus, and says which one is chosen.
"use strict";

(() => {
  const palette = document.getElementById("palette");
  const keys = document.getElementById("keys");
  if (!palette || !palette.showModal) return;
  const field = palette.querySelector("input");
  const list = document.getElementById("palette-found");
  const status = palette.querySelector("[role=status]");
  let chosen = -1;
  let waiting = false; // what stands there is not yet of what was typed
  let go = false; // Enter was pressed meanwhile

  const options = () => [...list.querySelectorAll("[role=option]")];

  const choose = (at) => {
    const all = options();
    all.forEach((each) => each.setAttribute("aria-selected", "false"));
    chosen = all.length ? (at + all.length) % all.length : -1;
    field.setAttribute("aria-expanded", String(all.length > 0));
    if (chosen < 0) return field.removeAttribute("aria-activedescendant");
    all[chosen].setAttribute("aria-selected", "true");
    all[chosen].scrollIntoView({ block: "nearest" });
    field.setAttribute("aria-activedescendant", all[chosen].id);
  };

  const open = () => {
    if (palette.open) return;
    keys.close();
    palette.showModal();
    field.select();
    waiting = true;
    htmx.trigger(field, "ldfi:open");
  };

  field.addEventListener("input", () => { waiting = true; go = false; });
  list.addEventListener("htmx:afterSwap", () => {
    waiting = false;
    const count = options().length;
    status.textContent = count ? `${count} found` : "Nothing is called so.";
    choose(0);
    if (go && count) options()[0].click();
    go = false;
  });
  for (const failed of ["htmx:responseError", "htmx:sendError"]) {
    palette.addEventListener(failed, () => {
      waiting = go = false;
      list.replaceChildren();
      choose(0);
      status.textContent = "The service did not answer. Enter tries once more.";
    });
  }
  field.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      choose(chosen + step);
    } else if (event.key === "Enter" && (waiting || chosen >= 0)) {
      event.preventDefault();
      if (waiting) go = true;
      else options()[chosen].click();
    }
  });
  list.addEventListener("mousemove", (event) => {
    const at = options().indexOf(event.target.closest("[role=option]"));
    if (at >= 0 && at !== chosen) choose(at);
  });

  const showKeys = () => { if (!palette.open && !keys.open) keys.showModal(); };
  const single = keys.querySelector("input");
  const kept = (() => { try { return localStorage; } catch { return {}; } })();
  single.checked = kept.ldfi_keys !== "off";
  single.addEventListener("change", () => { kept.ldfi_keys = single.checked ? "on" : "off"; });
  keys.querySelector("button").addEventListener("click", () => keys.close());

  const typing = (element) => element.closest?.("input, textarea, select, [contenteditable]");
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") {
      event.preventDefault();
      open();
    } else if (event.key === "?" && single.checked && !event.ctrlKey && !event.metaKey && !typing(event.target)) {
      event.preventDefault();
      showKeys();
    }
  });
  const beside = (dialog, { clientX: x, clientY: y }) => {
    const box = dialog.getBoundingClientRect();
    return x < box.left || x > box.right || y < box.top || y > box.bottom;
  };
  document.addEventListener("click", (event) => {
    if ((event.target === palette || event.target === keys) && beside(event.target, event)) event.target.close();
    if (event.target.closest("#show-keys")) showKeys();
    if (!event.target.closest("#open-palette") || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open();
  });
  if (/Mac|iP(hone|ad)/.test(navigator.platform)) {
    document.querySelectorAll("kbd").forEach((each) => { each.textContent = each.textContent.replace("Ctrl", "⌘"); });
  }
})();
