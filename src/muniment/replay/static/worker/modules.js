// Modules as wabac.js has rewritten them: their own names go before those that it imports, and their address is that of the
// archived module. (Names: the kind of wombat 72 and 127, there for classic scripts. `import.meta.url`: no report known.)
"use strict";
MUNIMENT.modules = (() => {
  const IMPORT = /import \{ ([\w, ]+) \} from ("[^"]{0,4000}__wb_module_decl\.js");\n/g;
  const ADDRESS = /\bimport\s*\.\s*meta\s*\.\s*url\b/;

  /** Whether a name may be declared: it stands where declarations have one. */
  function mayDeclare(text, name) {
    return new RegExp(`(?:\\b(?:function|class|var|let|const|as|import)\\b[\\s*]*|[,{[\\n]\\s*|\\.\\.\\.)${name}\\s*(?:[=,;}\\]({\\n]|in\\b|of\\b|from\\b|extends\\b|$)`).test(text);
  }

  function mended(text, names, from, url) {
    const likely = names.filter((name) => mayDeclare(text, name));
    const asks = ADDRESS.test(text);
    if (!likely.length && !asks) return `import { ${names.join(", ")} } from ${from};\n${text}`;
    const { declared, addresses } = MUNIMENT.moduleScope(text, likely);
    let rest = text;
    for (const [start, end] of addresses.reverse()) rest = rest.slice(0, start) + url + rest.slice(end);
    return `import { ${names.filter((name) => !declared.has(name)).join(", ")} } from ${from};\n${rest}`;
  }

  /** A text in which modules begin with their import; `end` finds where each of them ends. */
  return (text, url, end) => {
    let made = "";
    let at = 0;
    for (const found of text.matchAll(IMPORT)) {
      if (found.index < at) continue;
      const begin = found.index + found[0].length;
      const stop = end(text, begin);
      made += text.slice(at, found.index) + mended(text.slice(begin, stop), found[1].split(", "), found[2], url);
      at = stop;
    }
    return made + text.slice(at);
  };
})();
