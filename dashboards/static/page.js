// What every page does with a script: times in the viewer's zone, light or dark, copy buttons.
"use strict";

(() => {
  const root = document.documentElement;
  root.classList.add("scripted");

  const yearLong = 365 * 86400;
  const remember = (name, value) => {
    const secure = location.protocol === "https:" ? "; Secure" : "";
    document.cookie = `${name}=${encodeURIComponent(value)}; Path=/; Max-Age=${yearLong}; SameSite=Strict${secure}`;
  };
  remember("ldfi_zone", Intl.DateTimeFormat().resolvedOptions().timeZone);

  // Times are UTC in the page: without this script they stay so. 24 hours and a zone, always.
  const parts = new Intl.DateTimeFormat("en-GB", {
    year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit",
    hourCycle: "h23", timeZoneName: "short",
  });
  const written = (at, shown) => {
    const of = Object.fromEntries(parts.formatToParts(at).map((part) => [part.type, part.value]));
    const day = shown === "clock" ? "" : `${of.year}-${of.month}-${of.day} `;
    return `${day}${of.hour}:${of.minute}${shown === "second" ? `:${of.second}` : ""} ${of.timeZoneName}`;
  };
  const units = [["day", 86400], ["hour", 3600], ["minute", 60]];
  const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "short" });

  const ago = (seconds) => {
    for (const [unit, size] of units) {
      if (Math.abs(seconds) >= size) return relative.format(Math.trunc(seconds / size), unit);
    }
    return "just now";
  };

  const say = (time) => {
    const at = new Date(time.dateTime);
    const shown = time.dataset.show;
    time.textContent = shown === "ago" ? ago((at - Date.now()) / 1000) : written(at, shown);
    time.title = written(at, "second");
  };

  const sayAll = (within) => within.querySelectorAll("time[data-show]").forEach(say);
  sayAll(document);
  document.addEventListener("htmx:afterSettle", (event) => sayAll(event.target));
  setInterval(() => document.querySelectorAll('time[data-show="ago"]').forEach(say), 30000);

  // What only draws pictures waits until there is something to read. In the order of the page.
  const later = () =>
    document.querySelectorAll("template[data-later]").forEach((waiting) => {
      const script = document.createElement("script");
      script.async = false;
      script.src = waiting.dataset.later;
      waiting.replaceWith(script);
    });
  requestAnimationFrame(() => setTimeout(later));

  // Light or dark: what the system says, until somebody presses the button.
  const theme = document.getElementById("theme");
  const dark = () =>
    root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const nameTheme = () => {
    if (!theme) return;
    const other = dark() ? "Light theme" : "Dark theme";
    document.getElementById("theme-name").textContent = other;
    theme.setAttribute("aria-label", other);
  };
  nameTheme();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", nameTheme);
  if (theme) {
    theme.addEventListener("click", () => {
      root.dataset.theme = dark() ? "light" : "dark";
      remember("ldfi_theme", root.dataset.theme);
      nameTheme();
      document.dispatchEvent(new CustomEvent("ldfi:theme"));
    });
  }

  // On a phone the names of a place's pages are a strip: show where we are.
  const strip = document.querySelector(".within");
  const current = strip?.querySelector("a[aria-current]");
  if (current && strip) strip.scrollLeft = current.offsetLeft - (strip.clientWidth - current.clientWidth) / 2;

  // A form is sent once, however often its button is pressed.
  document.addEventListener("submit", (event) => {
    if (event.target.dataset.sent) event.preventDefault();
    event.target.dataset.sent = "yes";
  });
  addEventListener("pageshow", () => document.querySelectorAll("form[data-sent]").forEach((form) => delete form.dataset.sent));

  // <button data-copy="id"> copies the text of the element with that id.
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button[data-copy]");
    if (!button) return;
    const label = button.textContent;
    try {
      await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Press Ctrl+C";
      getSelection().selectAllChildren(document.getElementById(button.dataset.copy));
    }
    setTimeout(() => (button.textContent = label), 2000);
  });
})();
