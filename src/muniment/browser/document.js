// The document of one frame as it stands: where it leads, what else it could show, its markup and its text.
(whole) => {
  const links = [];
  const add = (href, how) => {
    if (links.length < 100000 && href && /^https?:/i.test(href)) links.push([href, how]);
  };
  const resolved = (href) => {
    try {
      return new URL(href, document.baseURI).href;
    } catch {
      return "";
    }
  };
  const candidates = (text, how) => {
    for (const match of text.matchAll(/\s*,*\s*(\S*[^\s,])(?:\s+[^,()]*(?:\([^)]*\))?[^,]*)?(?:,|$)/g)) add(resolved(match[1]), how);
  };
  const imageSets = (text) => {
    for (const set of text.matchAll(/image-set\(((?:[^()]|\([^()]*\))*)\)/gi)) {
      for (const one of set[1].matchAll(/url\(\s*["']?([^"')]+)|["']([^"']+)["']\s+[\d.]+(?:x|dppx|dpi)/gi)) add(resolved(one[1] || one[2]), "css-url");
    }
  };
  const shadows = [];
  const read = (root) => {
    for (const element of root.querySelectorAll("*")) {
      const name = element.localName;
      if (name === "a" && element.hasAttribute("href")) add(typeof element.href === "string" ? element.href : resolved(element.getAttribute("href")), "a");
      else if (name === "area" && element.href) add(element.href, "area");
      else if (name === "img" || name === "source") {
        if (element.srcset) candidates(element.srcset, "srcset");
        if (name === "img" && element.src) add(element.src, "img");
      } else if (name === "link" && element.imageSrcset) candidates(element.imageSrcset, "srcset");
      else if (name === "form" && (element.getAttribute("method") || "get").toLowerCase() === "get" && element.hasAttribute("action")) add(resolved(element.getAttribute("action")), "form");
      else if (name === "iframe" && element.src) add(element.src, "iframe");
      if (element.hasAttribute("style")) imageSets(element.getAttribute("style"));
      if (element.shadowRoot) {
        shadows.push(element.shadowRoot);
        read(element.shadowRoot);
      }
    }
    for (const sheet of root.styleSheets || []) {
      try {
        for (const rule of sheet.cssRules) if (rule.cssText.includes("image-set(")) imageSets(rule.cssText);
      } catch { /* of another origin */ }
    }
  };
  read(document);
  if (!whole) return { links };
  const root = document.documentElement;
  let dom = "";
  if (root) {
    const doctype = document.doctype ? new XMLSerializer().serializeToString(document.doctype) + "\n" : "";
    const empty = root.cloneNode(false).outerHTML;
    const at = empty.lastIndexOf("</");
    dom = doctype + empty.slice(0, at) + root.getHTML({ shadowRoots: shadows }) + empty.slice(at);
  }
  // the text of a document lacks that of its shadow roots
  const shown = (one) => one instanceof HTMLElement && getComputedStyle(one).display !== "none";
  const texts = [document.body, ...shadows.flatMap((shadow) => [...shadow.children])].filter(shown);
  return { links, title: document.title, dom, text: texts.map((one) => one.innerText).join("\n") };
}
