// What no policy of a browser keeps from the network is taken from every window that a page can get, before it can use it.
(() => {
  const GONE = ["RTCPeerConnection", "webkitRTCPeerConnection", "mozRTCPeerConnection", "RTCDataChannel", "WebTransport"];
  const INSERTS = {
    Node: ["appendChild", "insertBefore", "replaceChild"],
    Element: ["append", "prepend", "after", "before", "replaceWith", "replaceChildren", "insertAdjacentElement", "insertAdjacentHTML", "moveBefore", "setHTML", "setHTMLUnsafe"],
    CharacterData: ["after", "before", "replaceWith"],
    Document: ["open", "append", "prepend", "replaceChildren", "execCommand", "adoptNode", "moveBefore"],
    DocumentFragment: ["append", "prepend", "replaceChildren", "moveBefore"],
    ShadowRoot: ["setHTML", "setHTMLUnsafe"],
    Range: ["insertNode", "surroundContents"],
  };
  const SETTERS = { Element: ["innerHTML", "outerHTML"], ShadowRoot: ["innerHTML"], HTMLElement: ["innerText", "outerText"] };
  const FRAMES = "iframe, frame, object, embed";
  const FILE = `<script src="${location.origin === "null" ? self.parent.location.origin : location.origin}/before.js"></script>`;
  const guarded = new WeakSet();
  const TAG = /<(?=[a-z])/gi;
  const FRAME = /<(?:i?frame|object|embed)/i;
  const { apply } = Reflect;

  /** Guard every window below one that can be reached. */
  function sweep(top) {
    for (let at = 0; at < top.length; at += 1) {
      try {
        const child = top[at];
        void child.document; // throws where the window is another site's
        guard(child);
        sweep(child);
      } catch { /* nothing of it can be had */ }
    }
  }

  function guard(window) {
    if (guarded.has(window)) return;
    for (const name of GONE) {
      try {
        Object.defineProperty(window, name, { value: undefined, writable: false, configurable: false });
      } catch { /* gone already */ }
    }
    guarded.add(window);
    const around = (below) => function (...given) {
      try {
        return inserted(this, below, given);
      } finally {
        sweep(window);
      }
    };
    for (const [kind, names] of Object.entries(INSERTS)) {
      for (const name of names) replaceMethod(window[kind]?.prototype, name, around);
    }
    for (const [kind, names] of Object.entries(SETTERS)) {
      for (const name of names) replaceSetter(window[kind]?.prototype, name, around);
    }
    write(window);
    frames(window);
    watch(window);
    documents(window);
  }

  function replaceMethod(prototype, name, around) {
    const below = prototype?.[name];
    if (typeof below === "function") prototype[name] = named(around(below), name);
  }

  function replaceSetter(prototype, name, around) {
    const found = prototype && Object.getOwnPropertyDescriptor(prototype, name);
    if (found?.set) Object.defineProperty(prototype, name, { ...found, set: around(found.set) });
  }

  function named(made, name) {
    return Object.defineProperty(made, "name", { value: name });
  }

  /** Insert; of what brings frames and scripts, the scripts come when the frames' windows are guarded. */
  function inserted(target, below, given) {
    const scripts = [];
    for (const one of given) {
      if (one?.nodeType !== 1 && one?.nodeType !== 11) continue;
      if (!one.querySelector?.(FRAMES)) continue;
      for (const script of one.querySelectorAll("script")) {
        const place = script.ownerDocument.createComment("");
        natives.replaceChild.call(script.parentNode, place, script);
        scripts.push([place, script]);
      }
    }
    const made = apply(below, target, given);
    if (scripts.length) {
      sweep(self);
      for (const [place, script] of scripts) if (place.parentNode) natives.replaceChild.call(place.parentNode, script, place);
    }
    return made;
  }
  const natives = { replaceChild: Node.prototype.replaceChild };

  /** What is written at once comes in pieces, so that frames are guarded before the script behind them runs. */
  function write(window) {
    const piecewise = window.Document.prototype.write;
    for (const name of ["write", "writeln"]) {
      const below = window.Document.prototype[name];
      window.Document.prototype[name] = named(function (...given) {
        const text = given.map(String).join("");
        const pieces = FRAME.test(text) || window.length ? text.split(TAG) : [text];
        pieces.forEach((piece, at) => {
          (at < pieces.length - 1 ? piecewise : below).call(this, at ? `<${piece}` : piece);
          sweep(window);
        });
      }, name);
    }
  }

  /** Documents that a script makes as text begin with this file: those of `srcdoc` and of addresses with `javascript:`. */
  function documents(window) {
    const page = { policy: null };
    const own = window.trustedTypes;
    if (!own || own.defaultPolicy) return;
    const made = own.createPolicy("default", {
      createHTML: (text, kind, sink) => {
        const given = page.policy ? String(page.policy.createHTML(text, kind, sink)) : text;
        return sink === "HTMLIFrameElement srcdoc" && !given.startsWith(FILE) ? FILE + given : given;
      },
      createScript: (text, kind, sink) => {
        const given = page.policy ? String(page.policy.createScript(text, kind, sink)) : text;
        return sink === "Location href" ? scripted(given) : given;
      },
      createScriptURL: (text, kind, sink) => (page.policy ? String(page.policy.createScriptURL(text, kind, sink)) : text),
    });
    const { createPolicy } = own;
    Object.defineProperty(own, "createPolicy", { value: (name, rules) => {
      const policy = createPolicy.call(own, name === "default" ? "page" : name, rules);
      if (name === "default") page.policy = policy;
      return policy;
    } });
    return made;
  }

  /** The script of an address, whose text, if it gives one, becomes a document. */
  function scripted(text) {
    return `((made) => typeof made === "string" ? ${JSON.stringify(FILE)} + made : made)((0, eval)(${JSON.stringify(text)}))`;
  }

  /** Frames: their windows are guarded where they are asked for, and documents of theirs begin with this file. */
  function frames(window) {
    for (const kind of ["HTMLIFrameElement", "HTMLFrameElement", "HTMLObjectElement"]) {
      const prototype = window[kind]?.prototype;
      for (const name of ["contentWindow", "contentDocument"]) {
        const found = prototype && Object.getOwnPropertyDescriptor(prototype, name);
        if (found?.get) {
          Object.defineProperty(prototype, name, { ...found, get() {
            sweep(window);
            return found.get.call(this);
          } });
        }
      }
    }
    const srcdoc = Object.getOwnPropertyDescriptor(window.HTMLIFrameElement.prototype, "srcdoc");
    Object.defineProperty(window.HTMLIFrameElement.prototype, "srcdoc", { ...srcdoc, set(text) {
      srcdoc.set.call(this, FILE + text);
    } });
    const { setAttribute } = window.Element.prototype;
    window.Element.prototype.setAttribute = named(function (name, value) {
      const guards = String(name).toLowerCase() === "srcdoc" && this.localName === "iframe";
      return setAttribute.call(this, name, guards ? FILE + value : value);
    }, "setAttribute");
  }

  /** What a parser inserts, and frames whose documents change: seen before the next script of the page runs. */
  function watch(window) {
    new window.MutationObserver(() => sweep(self)).observe(window.document, { childList: true, subtree: true });
    window.document.addEventListener("load", () => sweep(self), true);
    const { attachShadow } = window.Element.prototype;
    window.Element.prototype.attachShadow = named(function (given) {
      const made = attachShadow.call(this, given);
      made.addEventListener("load", () => sweep(self), true);
      return made;
    }, "attachShadow");
  }

  guard(self);
  sweep(self);
})();
