// Tells the banner which page the frame shows: when it has loaded, and when its address changes.
(() => {
  if (self.parent === self || self.parent !== self.top) return;
  const { front } = document.currentScript.dataset;
  const { parent } = self;
  const ADDRESS = /^\/at\/(\d+)[a-z]*_?\/(.+)$/s;
  /** The document's own address, whatever its scripts make of it. */
  const view = here()?.slice(1, 3).join("/").replace(/#.*/s, "");
  const born = Math.random();
  let last = "";

  function here() {
    return ADDRESS.exec(location.href.slice(location.origin.length));
  }

  function report() {
    const found = here();
    if (!found || found[0] === last) return;
    last = found[0];
    parent.postMessage({ muniment: "page", at: found[1], url: found[2], view, born, frame: "top" }, front);
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
