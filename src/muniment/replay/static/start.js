// Starts the service worker that shows archived pages, and opens the page again through it.
"use strict";
(async () => {
  const NAME = "muniment-starts";
  const tell = (problem) => {
    document.querySelector("[data-reason]").textContent = problem;
    document.querySelector("[data-testid=no-worker]").hidden = false;
    document.querySelector("#starting").hidden = true;
  };
  const workers = navigator.serviceWorker;
  if (!workers) return tell("this browser has none here: they are switched off, or this is a private window");
  try {
    const registration = await workers.register("/sw.js", { scope: "/", updateViaCache: "none" });
    const worker = registration.installing ?? registration.waiting;
    const active = new Promise((done, fail) => {
      workers.ready.then(done);
      worker?.addEventListener("statechange", () => {
        if (worker.state === "activated") done();
        if (worker.state === "redundant") fail(new Error("it did not start"));
      });
    });
    if (!registration.active) await active;
    const starts = JSON.parse(sessionStorage.getItem(NAME) ?? "[]").filter((time) => Date.now() - time < 10_000);
    if (starts.length > 3) throw new Error("it does not answer");
    sessionStorage.setItem(NAME, JSON.stringify([...starts, Date.now()]));
    location.reload();
  } catch (problem) {
    sessionStorage.removeItem(NAME);
    tell(String(problem));
  }
})();
