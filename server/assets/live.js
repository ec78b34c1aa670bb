// Keeps the page of a run up to date. The server renders everything; this only asks for the page again when an event
// says that there is news, and puts its live parts in place of the old ones. Without it the page reloads itself.
"use strict";

(() => {
  const main = document.querySelector("[data-events]");
  if (!main) return;

  const LEAST_MS = 1000;
  const MOST_MS = 30000;
  const PATIENCE_MS = 5000;
  const note = document.getElementById("connection");
  let source = null;
  let tries = 0;
  let asking = false;
  let again = false;
  let nextAt = 0;
  let lost = 0;

  const say = (text) => {
    clearTimeout(lost);
    lost = 0;
    if (note && note.textContent !== text) note.textContent = text;
  };

  const connect = () => {
    source = new EventSource(main.dataset.events);
    for (const name of ["state", "progress", "verdict"]) source.addEventListener(name, refresh);
    source.addEventListener("open", () => {
      tries = 0;
      say("");
      refresh();
    });
    source.addEventListener("error", () => {
      // A stream that ends is opened again at once; only a pause is worth a word.
      lost ||= setTimeout(() => say("The connection is lost; trying again."), PATIENCE_MS);
      // A browser tries again by itself, unless the answer was no stream.
      if (source.readyState === EventSource.CLOSED) setTimeout(connect, pause());
    });
  };

  // Doubled with each try, and not the same for all who watch.
  const pause = () => {
    const most = Math.min(MOST_MS, LEAST_MS * 2 ** tries);
    tries += 1;
    return most / 2 + (Math.random() * most) / 2;
  };

  // At most one request at a time, and time between them in proportion to what they cost.
  const refresh = () => {
    if (asking) {
      again = true;
      return;
    }
    asking = true;
    setTimeout(ask, Math.max(0, nextAt - performance.now()));
  };

  const ask = async () => {
    again = false;
    const began = performance.now();
    try {
      const answer = await fetch(location.href, { headers: { accept: "text/html" }, cache: "no-store" });
      if (answer.ok) show(new DOMParser().parseFromString(await answer.text(), "text/html"));
    } catch {
      // The stream breaks with the network, and says so.
    }
    const ended = performance.now();
    nextAt = ended + Math.max(LEAST_MS, 10 * (ended - began));
    asking = false;
    if (again) refresh();
  };

  const show = (page) => {
    document.title = page.title;
    for (const part of document.querySelectorAll("[data-live]")) {
      const fresh = page.getElementById(part.id);
      if (fresh && fresh.outerHTML !== part.outerHTML) put(part, fresh);
    }
    if (!page.querySelector("[data-events]")) {
      source.close();
      say("");
    }
  };

  // What is open, scrolled or has the focus stays so; a part that is announced is changed, not replaced.
  const put = (part, fresh) => {
    const open = [...part.querySelectorAll("details")].map((details) => details.open);
    const scrolled = [...part.querySelectorAll(".scroll, .chart")].map((box) => box.scrollLeft);
    const focused = part.contains(document.activeElement) ? document.activeElement.id : "";
    part.className = fresh.className;
    part.replaceChildren(...fresh.childNodes);
    part.querySelectorAll("details").forEach((details, i) => (details.open = open[i] ?? details.open));
    part.querySelectorAll(".scroll, .chart").forEach((box, i) => (box.scrollLeft = scrolled[i] ?? 0));
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  };

  connect();
})();
