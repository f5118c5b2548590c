// Runs in archived pages before their own scripts: what no policy of a browser can keep from the network is taken away.
(() => {
  for (const name of ["RTCPeerConnection", "webkitRTCPeerConnection", "RTCDataChannel", "WebTransport"]) {
    try { Object.defineProperty(window, name, { value: undefined, writable: false, configurable: false }); } catch { /* there already */ }
  }
})();
