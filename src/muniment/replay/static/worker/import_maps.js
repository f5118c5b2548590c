// Import maps in pages: wabac.js leaves relative addresses, which would name modules twice, here and where they are
// imported (wabac.js 168 and wombat 141 brought maps, without this).
"use strict";
MUNIMENT.importMaps = (() => {
  const MAP = /(<script\b[^>]*\btype\s*=\s*["']?importmap\b[^>]*>)([^]*?)(?=<\/script)/gi;
  const BASE = /<base\b[^>]*\bhref\s*=\s*["']?(?:[^"'\s>]*?\/at\/\d+[a-z]*_\/)?([^"'\s>]+)/i;

  return (text, { url, time }) => {
    if (!/type\s*=\s*["']?importmap/i.test(text)) return text;
    const base = new URL(BASE.exec(text)?.[1] ?? url, url).href;
    const whole = (address) => (/^\.{0,2}\//.test(address) && !address.startsWith("/at/") ? `/at/${time}esm_/${new URL(address, base).href}` : address);
    const mapped = (one) => Object.fromEntries(Object.entries(one ?? {}).map(([key, value]) => [whole(key), typeof value === "string" ? whole(value) : mapped(value)]));
    return text.replace(MAP, (found, tag, json) => {
      try {
        const { imports, scopes, ...rest } = JSON.parse(json);
        return tag + JSON.stringify({ ...rest, imports: mapped(imports), scopes: mapped(scopes) });
      } catch {
        return found;
      }
    });
  };
})();
