// Reads the text of a module as far as it takes to know which names it declares in its own scope, and where it asks for its
// address. A name that may be declared counts as declared: what is left out of the imports of wabac.js is the browser's.
"use strict";
MUNIMENT.moduleScope = (() => {
  const TOKEN = /([A-Za-z_$\\\x80-\uffff][\w$\\\x80-\uffff]*|#[\w$\x80-\uffff]+)|(\d[\w.]*|\.\d\w*)|("(?:[^"\\\n]|\\[^])*"|'(?:[^'\\\n]|\\[^])*')|\/\/[^\n]*|\/\*[^]*?\*\/|(=>|\.\.\.|[^\s])/y;
  const BLANK = /\s+/y;
  const REGEXP = /\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/\w*/y;
  const TEMPLATE = /(?:[^`\\$]|\\[^]|\$(?!\{))*(`|\$\{)/y;
  const CONTROL = new Set(["if", "for", "while", "switch", "catch", "with", "await"]);
  const BEFORE_BLOCK = new Set(["", ";", "{", "}", "else", "do", "try", "finally"]);
  const BEFORE_VALUE = new Set(["return", "typeof", "case", "in", "of", "delete", "void", "throw", "new", "instanceof", "yield", "await", "else", "do"]);
  const LISTS = new Set(["var", "let", "const"]);

  class Reader {
    constructor(text, wanted) {
      Object.assign(this, { text, wanted, at: 0, before: "", kind: "", open: [], functions: 0, list: null, names: "", held: "" });
      this.declared = new Set();
      this.addresses = [];
      this.trail = [];
    }

    read() {
      while (this.at < this.text.length) this.step();
      return { declared: this.declared, addresses: this.addresses };
    }

    step() {
      this.skip(BLANK);
      if (this.at >= this.text.length) return;
      if (this.text[this.at] === "`") return this.template(this.at + 1);
      if (this.text[this.at] === "/" && this.beginsValue() && this.skip(REGEXP)) return this.took("/", "value");
      TOKEN.lastIndex = this.at;
      const start = this.at;
      const found = TOKEN.exec(this.text);
      this.at = found ? TOKEN.lastIndex : this.at + 1;
      if (found?.[1]) this.word(found[1], start);
      else if (found?.[2] || found?.[3]) this.took(found[0], "value");
      else if (found?.[4]) this.mark(found[4]);
    }

    skip(pattern) {
      pattern.lastIndex = this.at;
      if (!pattern.test(this.text)) return false;
      this.at = pattern.lastIndex;
      return true;
    }

    beginsValue() {
      if (this.kind === "word") return BEFORE_VALUE.has(this.before);
      return this.kind !== "value" && ![")", "]"].includes(this.before) || this.before === ")" && this.control;
    }

    template(from) {
      TEMPLATE.lastIndex = from;
      const found = TEMPLATE.exec(this.text);
      this.at = found ? TEMPLATE.lastIndex : this.text.length;
      if (found?.[1] === "${") this.push("template");
      this.took(found?.[1] === "${" ? "(" : "`", found?.[1] === "${" ? "mark" : "value");
    }

    push(kind) {
      this.open.push(kind);
      if (kind === "function") this.functions += 1;
    }

    get inside() {
      return this.open.at(-1) ?? "";
    }

    took(text, kind) {
      if (this.held && text !== ":") this.declare(this.held);
      this.held = "";
      this.before = text;
      this.kind = kind;
      if (kind === "value") this.importing = false;
    }

    declare(name) {
      if (this.wanted.has(name)) this.declared.add(name);
    }

    word(word, start) {
      const member = this.before === ".";
      const before = this.before;
      this.took(word, "word");
      if (this.list && this.list.expects && this.open.length === this.list.depth) {
        this.declare(word);
        this.list.expects = false;
      } else if (this.inside === "pattern") {
        this.held = word;
      } else if (member) {
        this.trail = word === "meta" || word === "url" ? [...this.trail, word] : [];
        if (this.trail.join(".") === "import.meta.url") this.addresses.push([this.trailStart, this.at]);
      } else {
        this.plain(word, before, start);
      }
    }

    plain(word, before, start) {
      this.trail = word === "import" ? ["import"] : [];
      this.trailStart = start;
      if (LISTS.has(word) && (word === "var" ? !this.functions : !this.open.length)) {
        this.list = { depth: this.open.length, expects: true };
      } else if ((before === "function" || before === "class" || before === "*") && !this.open.length) {
        this.declare(word);
      } else if (this.importing && !this.open.length) {
        if (word === "from") this.importing = false;
        else if (word !== "as") this.declare(word);
      } else if (word === "import" && !this.open.length) {
        this.importing = true;
      }
    }

    mark(mark) {
      const before = this.before;
      const kind = this.kind;
      if (mark === "}" && this.inside === "template") {
        this.open.pop();
        return this.template(this.at);
      }
      this.took(mark, "mark");
      if (mark === "(" || mark === ".") this.importing = this.importing && before !== "import";
      if (mark === "(") this.push(kind === "word" && CONTROL.has(before) ? "control" : "paren");
      else if (mark === "[") this.push(this.beginsPattern() ? "pattern" : "bracket");
      else if (mark === "{") this.push(this.brace(before));
      else if (mark === ")" || mark === "]" || mark === "}") this.close(mark);
      else if (this.list && this.open.length === this.list.depth) this.endOrNext(mark);
    }

    beginsPattern() {
      const begins = this.inside === "pattern" || Boolean(this.list?.expects && this.open.length === this.list.depth);
      if (begins && this.list) this.list.expects = false;
      return begins;
    }

    brace(before) {
      if (this.beginsPattern() || (this.importing && !this.open.length)) return "pattern";
      if (before === "=>" || (before === ")" && !this.control) || before === "static") return "function";
      return BEFORE_BLOCK.has(before) || before === ")" ? "block" : "object";
    }

    close(mark) {
      const closed = this.open.pop();
      if (closed === "function") this.functions -= 1;
      this.control = mark === ")" && closed === "control";
      if (mark === "}" && (closed === "object" || closed === "pattern")) this.kind = "value";
      if (this.list && this.open.length < this.list.depth) this.list = null;
    }

    endOrNext(mark) {
      if (mark === ",") this.list.expects = true;
      else if (mark === ";") this.list = null;
    }
  }

  return (text, wanted) => new Reader(text, new Set(wanted)).read();
})();
