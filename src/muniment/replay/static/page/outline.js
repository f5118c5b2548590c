// In an archived page: outlines what is missing from the archive, while the banner asks for it. It goes before all other
// scripts, and hears the banner alone, whose messages no other script of the page gets.
(() => {
  if (self.top === self) return;
  const { front } = document.currentScript.dataset;
  const { top, location, document: page, URL: Address } = self;
  const native = (type, name) => Object.getOwnPropertyDescriptor(type.prototype, name).get;
  const [source, origin, data] = ["source", "origin", "data"].map((name) => native(MessageEvent, name));
  const [base, shadow] = [native(Node, "baseURI"), native(Element, "shadowRoot")];
  const { getAttribute, setAttribute, removeAttribute } = Element.prototype;
  const MARK = "data-muniment-missing";
  const NAMES = ["src", "srcset", "imagesrcset", "href", "xlink:href", "poster", "data"];
  const LINKS = new Set(["a", "area", "base"]);
  const MOST = 50_000;
  const REWRITTEN = /^\/at\/\d+(?:[a-z]+_)?\/(?=[a-z][a-z0-9+.-]*:)/i;
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(`[${MARK}] { outline: 3px dashed #d6006e !important; outline-offset: -3px !important;
    background-color: rgb(214 0 110 / 15%) !important; min-width: 24px !important; min-height: 24px !important; }`);

  /** An address as it was on the live site, in either form that it may have in the page; without scheme and fragment. */
  function meant(text, from) {
    try {
      let url = new Address(text, location.href);
      const path = url.href.slice(url.origin.length);
      const found = url.origin === location.origin && REWRITTEN.exec(path);
      url = new Address(found ? path.slice(found[0].length) : text, found ? undefined : from);
      return url.href.replace(/#.*/s, "").replace(/^https?:/i, "");
    } catch {
      return "";
    }
  }

  function addresses(element) {
    const given = NAMES.map((name) => [name, getAttribute.call(element, name)]).filter(([, text]) => text);
    return given.flatMap(([name, text]) =>
      name.endsWith("srcset") ? text.split(/\s+/).map((one) => one.replace(/^,+|,+$/g, "")) : [text.trim()]);
  }

  /** The document and the open shadow trees in it, and all their elements. */
  function parts() {
    const roots = [page];
    const elements = [];
    for (const root of roots) {
      for (const one of root.querySelectorAll("*")) {
        if (elements.push(one) > MOST) return { roots, elements };
        const inner = shadow.call(one);
        if (inner) roots.push(inner);
      }
    }
    return { roots, elements };
  }

  function outline(missing) {
    const { roots, elements } = parts();
    for (const root of roots) {
      const others = root.adoptedStyleSheets.filter((one) => one !== sheet);
      root.adoptedStyleSheets = missing.length ? [...others, sheet] : others;
    }
    const here = base.call(page);
    const path = here.startsWith(location.origin) ? here.slice(location.origin.length) : "";
    const from = path.replace(REWRITTEN, "") || here;
    const reasons = new Map(missing.map(({ url, reason }) => [meant(url), reason]));
    reasons.delete("");
    for (const element of elements) {
      const found = LINKS.has(element.localName)
        ? undefined
        : addresses(element).map((text) => meant(text, from)).find((url) => reasons.has(url));
      if (found !== undefined) setAttribute.call(element, MARK, reasons.get(found));
      else if (getAttribute.call(element, MARK) !== null) removeAttribute.call(element, MARK);
    }
  }

  self.addEventListener("message", (event) => {
    const told = data.call(event);
    if (source.call(event) !== top || origin.call(event) !== front || told?.muniment !== "outline") return;
    event.stopImmediatePropagation();
    outline(told.missing);
  });
})();
