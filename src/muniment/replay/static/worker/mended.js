// What wabac.js leaves to do in scripts, pages and workers. Texts are handled as bytes: what is added is ASCII.
"use strict";
MUNIMENT.mended = (() => {
  const MOST = 50 << 20;
  const SCRIPT_END = /<\/script/gi;
  const WORKERS = new Set(["worker", "sharedworker"]);
  const MODULES = new Set(["esm_", "wkrm_"]);
  /** `layout(location = 0)` of a shader, which is a text in a script (MapLibre 6); no report known. */
  const SHADER = /(\blayout\s*\(\s*location\s*=\s*)\(\(self\.__WB_check_loc && self\.__WB_check_loc\(location, [^)]*\)\) \|\| \{\}\)\.(?:maybeHref|href) = /g;

  async function mended(response, about) {
    const type = response.headers.get("content-type") ?? "";
    const script = about.destination === "script" || WORKERS.has(about.destination) || MODULES.has(about.mod);
    const page = /^text\/html\b/i.test(type) && !script && about.framed;
    if (!(script || page) || !response.ok || !response.body) return response;
    const bytes = new Uint8Array(await response.arrayBuffer());
    if (bytes.length > MOST) return remade(response, bytes);
    let text = MUNIMENT.texts.from(bytes);
    text = text.replace(SHADER, "$1");
    const url = asciiString(about.url);
    text = MUNIMENT.modules(text, url, page ? endOfScript : (whole) => whole.length);
    if (page) text = MUNIMENT.importMaps(text, about);
    if (WORKERS.has(about.destination)) text = MUNIMENT.workerPrelude(text, about) + text;
    return remade(response, MUNIMENT.texts.to(text));
  }

  function endOfScript(text, from) {
    SCRIPT_END.lastIndex = from;
    return SCRIPT_END.exec(text)?.index ?? text.length;
  }

  function asciiString(text) {
    return JSON.stringify(text).replace(/[^ -~]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
  }

  function remade(response, body) {
    const headers = new Headers(response.headers);
    headers.delete("content-length");
    return new Response(body, { status: response.status, statusText: response.statusText, headers });
  }

  return mended;
})();
