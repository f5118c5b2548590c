// What no policy of a browser keeps from the network is taken from every window that a page can get, before it can use it.
"use strict";
(() => {
  const { apply, construct, defineProperty, getOwnPropertyDescriptor, textOf, quoted, lower, startsWith, slice, codeAt } = natives;
  const { has, add, framesOf, elementOf, Observer, observe, listen, documentOf, viewOf, treeOf, localName, attribute, setAttribute, windowOf } = natives;
  const GONE = ["RTCPeerConnection", "webkitRTCPeerConnection", "mozRTCPeerConnection", "RTCDataChannel", "WebTransport"];
  const FILE = `<script src="${document.currentScript.src}"><\/script>`;
  const guarded = new WeakSet();
  const known = new WeakSet();
  /** Windows that others do not count: those of frames in shadow trees. */
  const hidden = [];
  const top = topmost(self);
  const insert = insertions(natives, { all: sweepAll, frame: reachFrame, tend });

  /** The uppermost window that a page here can reach. */
  function topmost(window) {
    try {
      for (;;) {
        const above = window.parent;
        void above.document; // throws where the window is another site's
        if (above === window) return window;
        window = above;
      }
    } catch {
      return window;
    }
  }

  function sweepAll() {
    reach(top, false);
    for (let at = 0; at < hidden.length; at += 1) reach(hidden[at], true);
  }

  /** Guard a window and those below it; a guard watches its own window, and what is `inside` of that. */
  function reach(window, inside) {
    try {
      if (!window.document) return;
    } catch {
      return; // another site's: nothing of it can be had
    }
    guard(window, inside);
    const frames = framesOf(window);
    for (let at = 0; at < frames; at += 1) reach(window[at], inside || window === self);
  }

  function reachFrame(frame) {
    const name = localName(frame);
    const window = windowOf[name] && windowOf[name](frame);
    if (!window) return;
    const tree = treeOf(frame);
    if (tree !== documentOf(frame) && !has(known, window)) {
      add(known, window);
      defineProperty(hidden, hidden.length, { __proto__: null, value: window, writable: true, configurable: true, enumerable: true });
      watch(tree);
    }
    reach(window, true);
  }

  function guard(window, inside) {
    const { document } = window;
    if (has(guarded, document)) return;
    add(guarded, document);
    const first = getOwnPropertyDescriptor(window, GONE[0]);
    const isGuarded = Boolean(first && !first.configurable && !first.get && first.value === undefined);
    for (let at = 0; at < GONE.length; at += 1) {
      try {
        defineProperty(window, GONE[at], { __proto__: null, value: undefined, writable: false, configurable: false });
      } catch { /* gone already */ }
    }
    if (isGuarded && !inside && window !== self) return; // by itself
    watch(document);
    if (window !== self) {
      const frame = elementOf(window);
      if (frame) tend(frame);
      if (isGuarded) return; // by itself, or when it was another document's
    }
    insert(window);
    write(window);
    frames(window);
    texts(window);
  }

  /** What a parser inserts, and frames whose documents change: seen before the next script of the page runs. */
  function watch(tree) {
    listen(tree, "load", sweepAll, true);
    if (has(known, tree)) return;
    add(known, tree);
    observe(construct(Observer, [sweepAll]), tree, { __proto__: null, childList: true, subtree: true });
  }

  /** What is written comes in pieces, so that frames are guarded before the script behind them runs. */
  function write(window) {
    const { prototype } = window.Document;
    const { write: piecewise, open } = prototype;
    const written = (end) => function (...given) {
      let text = "";
      for (let at = 0; at < given.length; at += 1) text += textOf(given[at]);
      text += end;
      apply(piecewise, this, [""]); // opens it where that is due: listeners go then
      watch(this);
      let from = 0;
      for (let at = 0; at < text.length; at += 1) {
        if (at === from || text[at] !== "<" || !isLetter(codeAt(text, at + 1))) continue;
        apply(piecewise, this, [slice(text, from, at)]);
        sweepAll();
        from = at;
      }
      apply(piecewise, this, [slice(text, from)]);
      sweepAll();
    };
    replace(prototype, "write", written(""));
    replace(prototype, "writeln", written("\n"));
    replace(prototype, "open", function (...given) {
      const made = apply(open, this, given);
      if (given.length > 2) opened(made);
      else watch(this);
      sweepAll();
      return made;
    });
    const { open: below } = window;
    replace(window, "open", function (...given) {
      return opened(apply(below, window, given));
    });
  }

  function isLetter(code) {
    return (code | 32) >= 97 && (code | 32) <= 122;
  }

  function opened(window) {
    if (window) reach(window, false);
    return window;
  }

  function replace(target, name, value) {
    defineProperty(value, "name", { __proto__: null, value: name });
    defineProperty(target, name, { __proto__: null, value, writable: true, enumerable: true, configurable: true });
  }

  /** Frames: their windows are guarded where they are asked for, and none is a custom element. */
  function frames(window) {
    const kinds = ["HTMLIFrameElement", "HTMLFrameElement", "HTMLObjectElement", "HTMLEmbedElement"];
    for (let at = 0; at < kinds.length; at += 1) {
      const prototype = window[kinds[at]] && window[kinds[at]].prototype;
      asked(prototype, "contentWindow", (made) => made);
      asked(prototype, "contentDocument", viewOf);
      const svg = prototype && getOwnPropertyDescriptor(prototype, "getSVGDocument");
      if (svg) replace(prototype, "getSVGDocument", function () {
        reachFrame(this);
        return apply(svg.value, this, []);
      });
    }
    const { setAttribute: set } = window.Element.prototype;
    replace(window.Element.prototype, "setAttribute", function (name, value) {
      const called = textOf(name);
      const isText = lower(called) === "srcdoc" && localName(this) === "iframe";
      return apply(set, this, [called, isText ? begun(textOf(value)) : value]);
    });
    const srcdoc = getOwnPropertyDescriptor(window.HTMLIFrameElement.prototype, "srcdoc");
    defineProperty(window.HTMLIFrameElement.prototype, "srcdoc", { __proto__: null, get: srcdoc.get, set(text) {
      apply(srcdoc.set, this, [begun(textOf(text))]);
    }, enumerable: true, configurable: true });
    const { define } = window.CustomElementRegistry.prototype;
    replace(window.CustomElementRegistry.prototype, "define", function (name, kind, options) {
      const base = options && options.extends;
      if (base === undefined || base === null) return apply(define, this, [name, kind]);
      const built = textOf(base);
      if (built !== "iframe" && built !== "frame") apply(define, this, [name, kind, { __proto__: null, extends: built }]);
    });
  }

  function asked(prototype, name, windowIn) {
    const found = prototype && getOwnPropertyDescriptor(prototype, name);
    if (!found || !found.get) return;
    defineProperty(prototype, name, { __proto__: null, get() {
      const made = apply(found.get, this, []);
      if (made) {
        reachFrame(this);
        opened(windowIn(made));
      }
      return made;
    }, set: undefined, enumerable: true, configurable: true });
  }

  function begun(text) {
    return startsWith(text, FILE) ? text : FILE + text;
  }

  /** The document of a frame's own text begins with this file. */
  function tend(frame) {
    const text = attribute(frame, "srcdoc");
    if (text !== null && !startsWith(text, FILE)) setAttribute(frame, "srcdoc", FILE + text);
  }

  /** Documents that a script makes as text begin with this file: those of `srcdoc` and of addresses with `javascript:`. */
  function texts(window) {
    const page = { __proto__: null, policy: null };
    const types = window.trustedTypes;
    if (!types || types.defaultPolicy) return;
    const { createPolicy } = types;
    const told = (method, text, kind, sink) => (page.policy ? textOf(page.policy[method](text, kind, sink)) : text);
    apply(createPolicy, types, ["default", {
      __proto__: null,
      createHTML: (text, kind, sink) => {
        const made = told("createHTML", text, kind, sink);
        return sink === "HTMLIFrameElement srcdoc" ? begun(made) : made;
      },
      createScript: (text, kind, sink) => {
        const made = told("createScript", text, kind, sink);
        return sink === "Location href" ? scripted(made) : made;
      },
      createScriptURL: (text, kind, sink) => told("createScriptURL", text, kind, sink),
    }]);
    replace(types, "createPolicy", (name, rules) => {
      const called = textOf(name);
      const policy = apply(createPolicy, types, [called === "default" ? "page" : called, rules]);
      if (called === "default") page.policy = policy;
      return policy;
    });
  }

  /** The script of an address, whose text, if it gives one, becomes a document. */
  function scripted(text) {
    return `((made) => typeof made === "string" ? ${quoted(FILE)} + made : made)((0, eval)(${quoted(text)}))`;
  }

  guard(self, true);
  sweepAll();
})();
