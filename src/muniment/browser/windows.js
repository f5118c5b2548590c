// Runs before any script of a page: what would open a window is told instead, and opens none.
(() => {
  const name = "__munimentWindow";
  const tell = window[name];
  delete window[name];
  if (typeof tell !== "function") return;
  const told = (address) => {
    try {
      tell(new URL(address, document.baseURI).href);
    } catch { /* no address */ }
  };
  const open = function open(address) {
    if (address) told(String(address));
    return null;
  };
  open.toString = () => "function open() { [native code] }";
  window.open = open;
  const elsewhere = (target) => {
    const named = (target || "").toLowerCase();
    return named !== "" && !["_self", "_top", "_parent"].includes(named) && !frames[target];
  };
  addEventListener("click", (event) => {
    const link = event.composedPath().find((one) => one instanceof Element && one.matches("a[href], area[href]"));
    if (link && elsewhere(link.target || document.querySelector("base[target]")?.target)) {
      event.preventDefault();
      told(link.href);
    }
  });
  addEventListener("submit", (event) => {
    if (elsewhere(event.target.target)) event.preventDefault();
  });
})();
