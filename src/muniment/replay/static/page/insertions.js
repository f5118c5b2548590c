// All ways to insert. Frames come after what is inserted with them, but for scripts, and each is guarded at once: so they are
// when scripts and custom elements run.
"use strict";
const insertions = (natives, after) => {
  const { apply, defineProperty, getOwnPropertyDescriptor, textOf, lower, includes, nodeType, parentNode, firstChild, isConnected } = natives;
  const { documentOf, replaceChild, appendChild, removeChild, localName, space, matches, findIn, count, comment, element, fragment } = natives;
  const ALL = -1;
  /** Methods by interface, with the argument that is inserted. */
  const NODES = {
    __proto__: null,
    Node: { __proto__: null, appendChild: 0, insertBefore: 0, replaceChild: 0 },
    Element: { __proto__: null, append: ALL, prepend: ALL, after: ALL, before: ALL, replaceWith: ALL, replaceChildren: ALL, insertAdjacentElement: 1 },
    CharacterData: { __proto__: null, after: ALL, before: ALL, replaceWith: ALL },
    DocumentType: { __proto__: null, after: ALL, before: ALL, replaceWith: ALL },
    Document: { __proto__: null, append: ALL, prepend: ALL, replaceChildren: ALL },
    DocumentFragment: { __proto__: null, append: ALL, prepend: ALL, replaceChildren: ALL },
    Range: { __proto__: null, insertNode: 0, surroundContents: 0 },
    HTMLSelectElement: { __proto__: null, add: 0 },
    HTMLOptionsCollection: { __proto__: null, add: 0 },
  };
  const SETTERS = { __proto__: null, Document: ["body"], HTMLTableElement: ["caption", "tHead", "tFoot"] };
  /** Others, which insert nothing new, or nothing with frames. */
  const OTHERS = {
    __proto__: null,
    Element: ["moveBefore", "setHTML"],
    Document: ["moveBefore", "adoptNode"],
    DocumentFragment: ["moveBefore"],
    ShadowRoot: ["setHTML"],
  };
  const WHERE = { beforebegin: "before", afterbegin: "prepend", beforeend: "append", afterend: "after" };
  const HTML = "http://www.w3.org/1999/xhtml";

  function wrap(prototype, name, around) {
    const found = prototype && getOwnPropertyDescriptor(prototype, name);
    if (!found || typeof found.value !== "function") return;
    const value = around(found.value);
    defineProperty(value, "name", { __proto__: null, value: name });
    defineProperty(prototype, name, { __proto__: null, value, writable: true, enumerable: found.enumerable, configurable: true });
  }

  function wrapSetter(prototype, name, around) {
    const found = prototype && getOwnPropertyDescriptor(prototype, name);
    if (!found || !found.set) return;
    defineProperty(prototype, name, { __proto__: null, get: found.get, set: around(found.set), enumerable: true, configurable: true });
  }

  function plain(below) {
    return function (...given) {
      try {
        return apply(below, this, given);
      } finally {
        after.all();
      }
    };
  }

  function inserting(below, which) {
    return function (...given) {
      const first = which === ALL ? 0 : which;
      const last = which === ALL ? given.length - 1 : which;
      const apart = [];
      if (isLive(this) && someFramed(given, first, last)) {
        for (let at = first; at <= last && at < given.length; at += 1) given[at] = without(given[at], "iframe, frame", apart);
        for (let at = first; at <= last && at < given.length; at += 1) given[at] = without(given[at], "script", apart);
      }
      let made;
      try {
        made = apply(below, this, given);
      } finally {
        putBack(apart);
      }
      for (let at = 0; at < apart.length; at += 1) if (made === apart[at].place) return apart[at].element;
      return made;
    };
  }

  function isLive(target) {
    try {
      return isConnected(target);
    } catch {
      return true; // a range, or a list of options
    }
  }

  function someFramed(given, first, last) {
    for (let at = first; at <= last && at < given.length; at += 1) {
      const type = typeOf(given[at]);
      if ((type === 1 && isFrame(given[at])) || (findIn[type] && count(findIn[type](given[at], "iframe, frame")))) return true;
    }
    return false;
  }

  function typeOf(node) {
    try {
      return nodeType(node);
    } catch {
      return 0; // a text
    }
  }

  function isFrame(element) {
    const name = localName(element);
    return name === "iframe" || name === "frame";
  }

  /** What is inserted without its frames, or its scripts, which have a comment in their place. */
  function without(node, what, apart) {
    const type = typeOf(node);
    if (!findIn[type]) return node;
    if (type === 1 && matches(node, what)) return takenOut(node, apart, false);
    const found = findIn[type](node, what);
    for (let at = 0; at < count(found); at += 1) takenOut(found[at], apart, true);
    return node;
  }

  function takenOut(element, apart, inside) {
    const place = comment(documentOf(element), "");
    if (inside) replaceChild(parentNode(element), place, element);
    const children = [];
    if (isFrame(element)) for (let child = firstChild(element); child; child = firstChild(element)) push(children, removeChild(element, child));
    push(apart, { element, place, children });
    return place;
  }

  function push(list, value) {
    defineProperty(list, list.length, { __proto__: null, value, writable: true, configurable: true, enumerable: true });
  }

  /** Frames first: what they hold, and scripts, find them guarded. */
  function putBack(apart) {
    for (let at = 0; at < apart.length; at += 1) {
      const { element, place, children } = apart[at];
      const parent = parentNode(place);
      if (parent && isFrame(element)) after.tend(element);
      if (parent) replaceChild(parent, element, place);
      if (parent && isFrame(element)) after.frame(element);
      for (let child = 0; child < children.length; child += 1) appendChild(element, children[child]);
    }
    after.all();
  }

  function hasFrame(text) {
    const small = lower(text);
    return includes(small, "<iframe") || includes(small, "<frame");
  }

  /** Nodes of a text, read as inside of an element. */
  function read(context, text, target, set, more) {
    const isElement = context && nodeType(context) === 1;
    const name = isElement ? localName(context) : "body";
    const document = documentOf(target);
    const holder = includes(name, "-") ? element(document, HTML, "div") : element(document, isElement ? space(context) : HTML, name);
    apply(set, holder, more === undefined ? [text] : [text, more]);
    const made = fragment(document);
    for (let child = firstChild(holder); child; child = firstChild(holder)) appendChild(made, child);
    return made;
  }

  /** Texts with frames are read apart and inserted as nodes. */
  function texts(window) {
    const element = window.Element.prototype;
    const root = window.ShadowRoot.prototype;
    const set = getOwnPropertyDescriptor(element, "innerHTML").set;
    const unsafe = element.setHTMLUnsafe;
    const nodes = { append: element.append, prepend: element.prepend, before: element.before, after: element.after };
    const { replaceChildren, replaceWith } = element;
    const ofRoot = root.replaceChildren;
    const isRead = (target, text) => hasFrame(text) && isConnected(target) && localNameOf(target) !== "template";
    const nulled = (text) => (text === null ? "" : textOf(text));

    const setter = (replace) => (below) => function (text) {
      const value = nulled(text);
      if (!isRead(this, value)) apply(plain(below), this, [value]);
      else apply(replace, this, [read(replace === ofRoot ? null : this, value, this, set)]);
    };
    const unsafely = (replace) => (below) => function (text, options) {
      const value = textOf(text);
      if (!isRead(this, value)) return apply(plain(below), this, options === undefined ? [value] : [value, options]);
      apply(replace, this, [read(replace === ofRoot ? null : this, value, this, unsafe, options)]);
    };
    wrapSetter(element, "innerHTML", setter(replaceChildren));
    wrapSetter(root, "innerHTML", setter(ofRoot));
    wrapSetter(element, "outerHTML", (below) => function (text) {
      const value = nulled(text);
      const parent = parentNode(this);
      if (!isRead(this, value) || nodeType(parent) === 9) apply(plain(below), this, [value]);
      else apply(replaceWith, this, [read(parent, value, this, set)]);
    });
    wrap(element, "setHTMLUnsafe", unsafely(replaceChildren));
    wrap(root, "setHTMLUnsafe", unsafely(ofRoot));
    wrap(element, "insertAdjacentHTML", (below) => function (place, text) {
      const value = textOf(text);
      const where = lower(textOf(place));
      const context = where === "beforebegin" || where === "afterend" ? parentNode(this) : this;
      const isKnown = getOwnPropertyDescriptor(WHERE, where) !== undefined && context && nodeType(context) !== 9;
      if (!isKnown || !isRead(this, value)) apply(plain(below), this, [where, value]);
      else apply(nodes[WHERE[where]], this, [read(context, value, this, set)]);
    });
    wrap(window.Document.prototype, "execCommand", (below) => function (name, shown, value) {
      const command = lower(textOf(name));
      const text = value === undefined ? "" : textOf(value);
      return command === "inserthtml" && hasFrame(text) ? false : apply(plain(below), this, [command, shown, text]);
    });
  }

  function localNameOf(target) {
    return nodeType(target) === 1 ? localName(target) : "";
  }

  /** Take over a window's ways to insert. */
  return (window) => {
    for (const kind in NODES) {
      const prototype = window[kind] && window[kind].prototype;
      for (const name in NODES[kind]) wrap(prototype, name, (below) => inserting(below, NODES[kind][name]));
    }
    for (const kind in SETTERS) {
      for (let at = 0; at < SETTERS[kind].length; at += 1) {
        wrapSetter(window[kind] && window[kind].prototype, SETTERS[kind][at], (below) => inserting(below, 0));
      }
    }
    for (const kind in OTHERS) {
      for (let at = 0; at < OTHERS[kind].length; at += 1) wrap(window[kind] && window[kind].prototype, OTHERS[kind][at], plain);
    }
    texts(window);
  };
};
