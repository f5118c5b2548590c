// `document.cookie`: browsers keep none for frames of another site, so that these are kept in the tab, for each archived
// host (the kind of conifer 315).
(() => {
  const host = () => {
    const found = /\/at\/\d+[a-z]*_?\/(?:blob:[^/]*\/)?[a-z]+:\/\/([^/:?#]+)/i.exec(location.href);
    return found ? found[1].toLowerCase() : location.host;
  };
  let store;
  try {
    store = sessionStorage;
  } catch {
    return;
  }
  const { getItem, setItem } = Storage.prototype;
  const kept = () => JSON.parse(getItem.call(store, `muniment:cookies:${host()}`) ?? "{}");

  function isOver(attributes) {
    const age = /;\s*max-age\s*=\s*(-?\d+)/i.exec(attributes);
    const until = /;\s*expires\s*=\s*([^;]+)/i.exec(attributes);
    return age ? Number(age[1]) <= 0 : Boolean(until && Date.parse(until[1]) <= Date.now());
  }

  function keep(text) {
    const [pair, ...rest] = String(text).split(";");
    const attributes = rest.length ? `;${rest.join(";")}` : "";
    const at = pair.indexOf("=");
    const name = (at < 0 ? "" : pair.slice(0, at)).trim();
    const value = pair.slice(at + 1).trim();
    if ((!name && !value) || /;\s*httponly\b/i.test(attributes)) return;
    const cookies = kept();
    delete cookies[name];
    if (!isOver(attributes)) cookies[name] = value;
    setItem.call(store, `muniment:cookies:${host()}`, JSON.stringify(cookies));
  }

  Object.defineProperty(Document.prototype, "cookie", {
    get: () => Object.entries(kept()).map(([name, value]) => (name ? `${name}=${value}` : value)).join("; "),
    set: keep,
    configurable: true,
    enumerable: true,
  });
})();
