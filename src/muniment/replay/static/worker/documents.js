// Documents before wabac.js reads them: XHTML as HTML, and links of pages in older encodings escaped as browsers do it,
// the path in UTF-8 and the query in the page's own encoding (URL standard, query state). wabac.js reads both as UTF-8
// (wabac.js 60, pywb 361).
"use strict";
MUNIMENT.documents = (() => {
  const MOST = 50 << 20;
  const LINK = /(\s(?:href|src|action|formaction|poster|background|data|xlink:href)\s*=\s*)("[^"]*"|'[^']*'|[^\s"'>]+)/gi;
  const META = /<meta[^>]*?charset\s*=\s*["']?\s*([^\s"'/>;]+)/i;
  const CHARSET = /;\s*charset\s*=\s*"?([^\s";]+)/i;
  const HIGH = /[\x80-\xff]+/g;

  /** The decoder of a page; null where it is UTF-8. */
  function decoderOf(type, bytes) {
    if (bytes[0] === 0xef || bytes[0] >= 0xfe) return null; // a mark of its own, which wabac.js reads
    const label = CHARSET.exec(type)?.[1] ?? META.exec(MUNIMENT.texts.from(bytes.subarray(0, 1024)))?.[1] ?? "windows-1252";
    try {
      const decoder = new TextDecoder(label);
      return decoder.encoding === "utf-8" ? null : decoder;
    } catch {
      return null;
    }
  }

  function escaped(value, decoder) {
    const at = value.indexOf("?");
    const path = at < 0 ? value : value.slice(0, at);
    const query = at < 0 ? "" : value.slice(at);
    const bytesOf = (text) => Array.from(text, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`).join("");
    const words = path.replace(/[\x80-\xff][^\s"'<>/?#&]*/g, (word) => encodeURI(decoder.decode(MUNIMENT.texts.to(word))));
    return words + query.replace(HIGH, bytesOf);
  }

  /** The answer as wabac.js is to have it. */
  return async (response) => {
    const type = response.headers.get("content-type") ?? "";
    const xhtml = /^\s*application\/xhtml\+xml\b/i.test(type);
    if (!xhtml && !/^\s*text\/html\b/i.test(type)) return response;
    const bytes = new Uint8Array(await response.arrayBuffer());
    const headers = new Headers(response.headers);
    if (xhtml) headers.set("content-type", `text/html; charset=${CHARSET.exec(type)?.[1] ?? "utf-8"}`);
    const decoder = bytes.length > MOST || xhtml ? null : decoderOf(type, bytes);
    let body = bytes;
    if (decoder?.encoding.startsWith("utf-16")) {
      body = new TextEncoder().encode(decoder.decode(bytes));
      headers.set("content-type", "text/html; charset=utf-8");
    } else if (decoder) {
      const text = MUNIMENT.texts.from(bytes).replace(LINK, (_, name, value) => name + escaped(value, decoder));
      body = MUNIMENT.texts.to(text);
    }
    headers.delete("content-length");
    return new Response(body, { status: response.status, statusText: response.statusText, headers });
  };
})();
