// Workers from blobs: `location` has the origin of the page, what they load is of the page's time, and a module imports what
// wombat has a script import (wabac.js 274).
(() => {
  const Native = self.Worker;
  if (!Native) return;
  const SETUP = /^\(function\(\) \{ self\.importScripts\('([^']*)'\); new WBWombat\((\{[^}]*\})\); \}\)\(\);/;
  const { createObjectURL } = URL;
  const { open, send } = XMLHttpRequest.prototype;

  function textOf(url) {
    const request = new XMLHttpRequest();
    open.call(request, "GET", url, false);
    send.call(request);
    return request.responseText;
  }

  /** The blob's address for a worker that begins with a script of ours. */
  function prepared(url, module) {
    const page = /\/at\/(\d+)[a-z]*_?\/(.+)$/s.exec(location.href);
    if (!url.startsWith("blob:") || !page) return url;
    const origin = /^(?:blob:[^/]*\/)?(.+)$/s.exec(page[2])[1];
    const place = JSON.stringify(`blob:${new URL(origin).origin}/${url.slice(url.lastIndexOf("/") + 1)}`);
    const file = JSON.stringify(`${location.origin}/worker.js`);
    const text = textOf(url).replace(SETUP, (found) => found.replace("/at/wkrf_/", `/at/${page[1]}wkrf_/`));
    const setup = SETUP.exec(text);
    const typed = "self.trustedTypes?.createPolicy('default', { createHTML: (text) => text, createScript: (text) => text, createScriptURL: (text) => text });";
    const first = typed + (module
      ? `import ${file}; ${setup ? `import ${JSON.stringify(setup[1])}; ` : ""}self.munimentLocation(${place}); ${setup ? `new WBWombat(${setup[2]});` : ""}`
      : `self.importScripts(${file}); self.munimentLocation(${place});`);
    return createObjectURL(new Blob([first + (module ? text.replace(SETUP, "") : text)], { type: "text/javascript" }));
  }

  self.Worker = new Proxy(Native, {
    construct(target, [url, options, ...rest], self) {
      let made = url;
      try {
        made = prepared(String(url), options?.type === "module");
      } catch { /* it is started as it stands */ }
      return Reflect.construct(target, [made, options, ...rest], self);
    },
  });
})();
