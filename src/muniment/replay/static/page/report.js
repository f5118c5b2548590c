// Tells the banner which page the frame shows: when it has loaded, and when its address changes.
(() => {
  if (self.parent === self || self.parent !== self.top) return;
  const { front } = document.currentScript.dataset;
  const { parent } = self;
  let last = "";

  function report() {
    const found = /^\/at\/(\d+)[a-z]*_?\/(.+)$/s.exec(location.href.slice(location.origin.length));
    if (!found || found[0] === last) return;
    last = found[0];
    parent.postMessage({ muniment: "page", at: found[1], url: found[2], frame: "top" }, front);
  }

  report();
  addEventListener("pageshow", report);
  addEventListener("hashchange", report);
  addEventListener("popstate", report);
  for (const name of ["pushState", "replaceState"]) {
    const below = history[name];
    history[name] = function (...given) {
      const made = below.apply(this, given);
      report();
      return made;
    };
  }
})();
