// Modules that a script inserts as text: wombat wraps them as classic scripts, in which nothing can be imported (the kind of
// wombat 116).
(() => {
  const WRAPPED = /^var _____WB\$wombat\$assign\$function_____ = [^]*?\n\{\n(?:let \w+ = _____WB[^\n]*\n)*\{\n([^]*)\n\n\}\}(?:;document\.close\(\);)?$/;
  const STATIC = /(?:^|[;}\n])\s*(?:import\s*[\w${*"']|export\s*[\w${*])/;
  const ADDRESS = /((?:^|[;}\n])\s*(?:import|export)\b(?:[^;'"()]*?\bfrom)?\s*)(["'])([./][^"'\n]*|https?:[^"'\n]*)\2/g;
  const NAMES = ["window", "document", "location", "top", "parent", "frames", "opener", "self", "globalThis"];
  const baseOf = Object.getOwnPropertyDescriptor(Node.prototype, "baseURI").get;

  function unwrapped(text) {
    const inner = WRAPPED.exec(text)?.[1];
    const page = /^(.*?\/at\/\d+)[a-z]*_?\/(.+)$/s.exec(baseOf.call(document));
    if (inner === undefined || !page || !STATIC.test(inner)) return text;
    const names = NAMES.filter((name) => !new RegExp(`(?:\\b(?:function|class|var|let|const|as|import)\\s+|[,{[]\\s*)${name}\\s*(?:[=,;}\\]({\\n]|from\\b|$)`).test(inner));
    const whole = (found, before, quote, address) => `${before}${quote}${page[1]}esm_/${new URL(address, page[2]).href}${quote}`;
    return `import { ${names.join(", ")} } from "${page[1]}mp_/__wb_module_decl.js";\n${inner.replace(ADDRESS, whole)}`;
  }

  for (const [prototype, name] of [[Node.prototype, "textContent"], [HTMLScriptElement.prototype, "text"]]) {
    const found = Object.getOwnPropertyDescriptor(prototype, name);
    Object.defineProperty(HTMLScriptElement.prototype, name, { ...found, set(text) {
      found.set.call(this, this.type === "module" ? unwrapped(String(text)) : text);
    } });
  }
})();
