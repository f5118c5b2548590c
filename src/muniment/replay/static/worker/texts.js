// Bytes as text and back, a character for each byte.
"use strict";
MUNIMENT.texts = {
  from(bytes) {
    let text = "";
    for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode.apply(null, bytes.subarray(at, at + 8192));
    return text;
  },
  to(text) {
    const bytes = new Uint8Array(text.length);
    for (let at = 0; at < text.length; at += 1) bytes[at] = text.charCodeAt(at);
    return bytes;
  },
};
