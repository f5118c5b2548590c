// What the guard uses of the browser, from before a page could replace it. What is called later uses no iterators (`for … of`,
// `...` in calls) and reads no method of an object that pages can reach.
"use strict";
const natives = (() => {
  const { apply, construct, defineProperty, getOwnPropertyDescriptor } = Reflect;
  const own = (method) => (target, ...given) => apply(method, target, given);
  const getter = (kind, name) => own(getOwnPropertyDescriptor(kind.prototype, name).get);
  const windowOf = { iframe: getter(HTMLIFrameElement, "contentWindow") };
  if (self.HTMLFrameElement) windowOf.frame = getter(HTMLFrameElement, "contentWindow");
  return {
    apply, construct, defineProperty, getOwnPropertyDescriptor, windowOf,
    textOf: String,
    quoted: JSON.stringify,
    lower: own(String.prototype.toLowerCase),
    includes: own(String.prototype.includes),
    startsWith: own(String.prototype.startsWith),
    slice: own(String.prototype.slice),
    codeAt: own(String.prototype.charCodeAt),
    has: own(WeakSet.prototype.has),
    add: own(WeakSet.prototype.add),
    framesOf: own(getOwnPropertyDescriptor(self, "length").get),
    elementOf: own(getOwnPropertyDescriptor(self, "frameElement").get),
    Observer: MutationObserver,
    observe: own(MutationObserver.prototype.observe),
    listen: own(EventTarget.prototype.addEventListener),
    nodeType: getter(Node, "nodeType"),
    parentNode: getter(Node, "parentNode"),
    firstChild: getter(Node, "firstChild"),
    isConnected: getter(Node, "isConnected"),
    documentOf: getter(Node, "ownerDocument"),
    viewOf: getter(Document, "defaultView"),
    treeOf: own(Node.prototype.getRootNode),
    replaceChild: own(Node.prototype.replaceChild),
    appendChild: own(Node.prototype.appendChild),
    removeChild: own(Node.prototype.removeChild),
    localName: getter(Element, "localName"),
    matches: own(Element.prototype.matches),
    space: getter(Element, "namespaceURI"),
    attribute: own(Element.prototype.getAttribute),
    setAttribute: own(Element.prototype.setAttribute),
    findIn: { 1: own(Element.prototype.querySelectorAll), 11: own(DocumentFragment.prototype.querySelectorAll) },
    count: getter(NodeList, "length"),
    comment: own(Document.prototype.createComment),
    element: own(Document.prototype.createElementNS),
    fragment: own(Document.prototype.createDocumentFragment),
  };
})();
