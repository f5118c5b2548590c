// Listeners that a page adds without naming its window (`addEventListener("message", …)`) have the window as their `this`;
// wombat 3.10 throws at them. No report known.
(() => {
  for (const name of ["addEventListener", "removeEventListener", "dispatchEvent"]) {
    const below = self[name];
    self[name] = function (...given) {
      return below.apply(this ?? self, given);
    };
  }
})();
