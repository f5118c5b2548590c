// The text of a document with that of its open shadow roots and its frames, without what is told to screen readers for a while.
(() => {
  const parts = [];
  const take = (root) => {
    const announcers = [...root.querySelectorAll("[data-live-announcer]")];
    const announced = new Set(announcers.flatMap((one) => one.innerText.split("\n")));
    const shown = root.body ? [root.body] : [...root.children].filter((one) => !/^(STYLE|SCRIPT)$/.test(one.tagName));
    for (const one of shown) parts.push((one.innerText ?? "").split("\n").filter((line) => !announced.has(line)).join("\n"));
    for (const one of root.querySelectorAll("*")) {
      if (one.shadowRoot) take(one.shadowRoot);
      if (one.localName === "iframe") try { take(one.contentDocument); } catch { /* another origin */ }
    }
  };
  take(document);
  return parts.join("\n");
})()
