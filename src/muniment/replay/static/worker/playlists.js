// Playlists of HLS and DASH, as they are: wabac.js keeps one variant of each, which need not be the one that was captured.
// Addresses of other hosts lead into the archive, for players of the browser's own.
"use strict";
MUNIMENT.playlists = (() => {
  const HLS = /^\s*(?:application|audio)\/(?:vnd\.apple\.|x-)?mpegurl\b/i;
  const DASH = /^\s*application\/dash\+xml\b/i;
  const ADDRESS = /^https?:\/\/\S+|(?<=URI=")https?:[^"]+/gm;

  const isOne = (response) => HLS.test(response.headers.get("content-type") ?? "") || DASH.test(response.headers.get("content-type") ?? "");

  async function mended(response, time) {
    if (!HLS.test(response.headers.get("content-type") ?? "") || response.status === 206) return response;
    const text = MUNIMENT.texts.from(new Uint8Array(await response.arrayBuffer()));
    const body = MUNIMENT.texts.to(text.replace(ADDRESS, (url) => `/at/${time}mp_/${url}`));
    const headers = new Headers(response.headers);
    headers.delete("content-length");
    return new Response(body, { status: response.status, statusText: response.statusText, headers });
  }

  return { isOne, mended };
})();
