// Workers see the address of the archived script: a script of ours runs before theirs. (wombat 197 has `href` alone.)
"use strict";
MUNIMENT.workerPrelude = (text, { mod }) => (mod === "wkrm_" ? 'import "/worker.js";\n' : 'self.importScripts("/worker.js");');
