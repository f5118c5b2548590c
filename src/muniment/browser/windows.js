// Runs before any script of a page: what would open a window or begin a download is told instead, and does not.
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
  const leaves = (link) => link.hasAttribute("download") || elsewhere(link.target || document.querySelector("base[target]")?.target);
  const click = HTMLElement.prototype.click;
  HTMLAnchorElement.prototype.click = function () {
    // of one that is in no document, no listener hears
    if (!this.isConnected && this.href && leaves(this)) told(this.href);
    else click.call(this);
  };
  addEventListener("click", (event) => {
    const link = event.composedPath().find((one) => one instanceof Element && one.matches("a[href], area[href]"));
    if (link && leaves(link)) {
      event.preventDefault();
      told(link.href);
    }
  });
  addEventListener("submit", (event) => {
    if (elsewhere(event.target.target)) event.preventDefault();
  });
})();
