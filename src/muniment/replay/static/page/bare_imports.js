// Names that scripts import while they run (`import("three/addons/…")`): what an import map has by its beginning is the
// browser's to look up. wombat 3.10 finds whole names alone, and takes the rest for relative addresses (wombat 141).
(() => {
  const below = self.____wb_rewrite_import__;
  const isBare = (name) => !/^(?:\.{0,2}\/|[a-z][a-z\d+.-]*:)/i.test(name);

  self.____wb_rewrite_import__ = function (base, name) {
    const asked = String(name ?? base);
    return isBare(asked) ? import(asked) : below.call(this, base, name);
  };
})();
