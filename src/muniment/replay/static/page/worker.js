// Runs first in workers of archived pages: `location` is that of the archived script, and no transport is there that no
// policy holds. (MapLibre compares the origin of its worker with that of its messages.)
"use strict";
(() => {
  if (self.munimentLocation) return;
  const scope = self.WorkerGlobalScope?.prototype;
  const own = self.location.href;

  function located(href) {
    const url = new URL(href);
    const place = { toString: () => url.href };
    for (const name of ["href", "origin", "protocol", "host", "hostname", "port", "pathname", "search", "hash"]) {
      Object.defineProperty(place, name, { get: () => url[name], enumerable: true });
    }
    return place;
  }

  /** Have `location` be that of an address. */
  function munimentLocation(href) {
    const place = located(href);
    if (scope) Object.defineProperty(scope, "location", { get: () => place, configurable: true });
    Object.defineProperty(self, "_WB_wombat_location", { get: () => place, set() {}, configurable: true });
    self._wb_wombat = { local_init: (name) => (name === "location" ? place : undefined) };
  }

  Object.defineProperty(self, "munimentLocation", { value: munimentLocation });
  for (const name of ["WebTransport", "RTCPeerConnection"]) {
    if (name in self) Object.defineProperty(self, name, { value: undefined });
  }
  const found = /\/at\/\d+[a-z]*_?\/(.+)$/s.exec(own);
  if (found) munimentLocation(found[1]);
})();
