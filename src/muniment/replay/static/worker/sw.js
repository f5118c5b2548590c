// The service worker of archived pages. It asks our server for what was recorded, has wabac.js rewrite it, and puts our
// policy on every answer last. It takes no messages, and no collection from a database. `MUNIMENT` is set before it.
"use strict";
(() => {
  const ORIGIN = self.location.origin;
  const AT = /^\/at\/(\d{1,20})([a-z]{2,4}_)?\/(.+)$/s;
  const DOCUMENTS = new Set(["document", "iframe", "frame", "fencedframe", "object", "embed"]);
  const FRAMED = new Set(["mp_", "if_", "fr_"]);
  const BODIES = new Set(["POST", "PUT", "PATCH", "DELETE"]);
  /** Texts that become documents or scripts of a page pass the guard in it; documents without it run no scripts. */
  const TYPED = "require-trusted-types-for 'script'";
  const UNSCRIPTED = "script-src 'none'";
  const listen = self.addEventListener.bind(self);

  /** What wabac.js finds where it looks for a database: one that never opens. */
  const never = () => Object.assign(new Promise(() => {}), { addEventListener() {} });
  const NO_DATABASE = { open: never, deleteDatabase: never };

  const engine = start();
  const collection = open(engine);

  listen("install", (event) => event.waitUntil(self.skipWaiting()));
  listen("activate", (event) => event.waitUntil(self.clients.claim()));
  listen("fetch", (event) => event.respondWith(answer(event)));

  /** wabac.js, which hears no events. Throws when the file lacks what is used of it. */
  function start() {
    Object.defineProperty(self, "indexedDB", { value: NO_DATABASE });
    self.addEventListener = () => {};
    importScripts("/wabac.js");
    delete self.addEventListener;
    const used = [self.sw?.getResponseFor, self.sw?.collections?._createCollection, self.sw?.collections?._initStore, self.sw?.staticData?.get];
    if (used.some((one) => typeof one !== "function")) throw new Error("this wabac.js lacks methods that replay uses");
    return self.sw;
  }

  /** The one collection: what our server has. */
  function open(engine) {
    const store = { getResource: kept, getAllPages: async () => [], delete: async () => {} };
    const config = { root: true, sourceUrl: "", decode: false, extraConfig: { noPostToGet: true, csp: MUNIMENT.policy } };
    const made = engine.collections._createCollection({ name: "at", store, config });
    engine.replayPrefix = made.prefix = `${ORIGIN}/at/`;
    engine.apiPrefix = `${ORIGIN}/none/`;
    Object.assign(engine.collections, { root: "at", colls: { at: made }, inited: Promise.resolve(true), getColl: async () => made });
    const insert = made.makeHeadInsert.bind(made);
    made.makeHeadInsert = (...given) =>
      `<script src="/before.js" data-front="${MUNIMENT.front}"></script>${insert(...given).replace("enable_auto_fetch = true", "enable_auto_fetch = false").replace(/pixel_ratio = \d+/, "pixel_ratio = 1")}<script src="/after.js" data-front="${MUNIMENT.front}"></script>`;
    return made;
  }

  /** The class of wabac.js for what is rewritten: one is made of an empty answer. */
  const archived = (async () => {
    const live = await engine.collections._initStore("live", { extraConfig: { isLive: false, archivePrefix: "/raw/" } });
    const fetch = self.fetch;
    self.fetch = async () => new Response("");
    const question = { headers: new Headers(), credentials: "omit", url: "http://empty.invalid/" };
    const made = live.getResource({ method: "GET", destination: "image", timestamp: "1", prepareProxyRequest: () => question }, "");
    self.fetch = fetch;
    const kind = (await made).constructor;
    if (typeof kind.fromResponse !== "function") throw new Error("this wabac.js lacks fromResponse");
    return kind;
  })();

  async function answer(event) {
    const url = new URL(event.request.url);
    if (url.origin !== ORIGIN) return said(404, "Archived pages reach their own origin alone.\n");
    const served = engine.staticData.get(ORIGIN + url.pathname);
    if (served) return finished(new Response(served.content, { headers: { "Content-Type": served.type } }));
    const found = AT.exec(url.pathname + url.search);
    try {
      return await (found ? replayed(event, found) : strayed(event, url));
    } catch (problem) {
      return problem instanceof Ended ? ended(event, found) : said(502, `This cannot be rewritten: ${problem}\n`);
    }
  }

  /** An answer about an archived address. */
  async function replayed(event, [, time, mod, url]) {
    const { destination } = event.request;
    if (DOCUMENTS.has(destination)) {
      if (mod && !FRAMED.has(mod)) return said(404, "Documents are shown rewritten alone.\n");
      if (destination === "document") return moved(`${MUNIMENT.front}/at/${time}/${url}`);
      if (!mod) return moved(`/at/${time}mp_/${url}`);
    } else if (!mod) {
      return moved(`/at/${time}id_/${url}`);
    }
    const request = await asSeen(event, mod);
    const framed = DOCUMENTS.has(destination);
    const made = await engine.getResponseFor(request, event);
    if (request.problem) throw request.problem;
    const answer = finished(await MUNIMENT.mended(made, { url, mod, time, destination, framed }));
    if (framed) answer.headers.append("Content-Security-Policy", isPage(answer) ? TYPED : UNSCRIPTED);
    return answer;
  }

  function isPage(answer) {
    return /^text\/html\b/i.test(answer.headers.get("content-type") ?? "text/html");
  }

  /** An address of the content's origin that was not rewritten: it is the page's own, or nothing. */
  async function strayed(event, url) {
    if (MUNIMENT.files.includes(url.pathname) || DOCUMENTS.has(event.request.destination)) return asked(event.request);
    const page = AT.exec(address(await pageOf(event)));
    if (!page) return said(404, "Only archived pages are here.\n");
    const meant = new URL(url.pathname + url.search, page[3]);
    return moved(`/at/${page[1]}${page[2] ?? "mp_"}/${meant.href}`, 307);
  }

  /** The request as wabac.js is to see it: ranges are cut by our server, and modules are told by their text. */
  async function asSeen(event, mod) {
    const { request } = event;
    const headers = new Headers(request.headers);
    headers.delete("range");
    const module = request.destination === "script" && request.mode === "cors" && mod !== "esm_";
    return {
      url: request.url.replace(/#.*/s, ""),
      method: request.method,
      mode: module ? "no-cors" : request.mode,
      destination: request.destination,
      shown: DOCUMENTS.has(request.destination) && mod === "mp_", // not framed by another archived page
      credentials: request.credentials,
      referrer: await pageOf(event),
      headers,
      clone: () => request.clone(),
      text: () => request.clone().text(),
      range: request.headers.get("range"),
    };
  }

  /** The address of the page or worker that asks; empty when it is not known. */
  async function pageOf(event) {
    const client = event.clientId ? await self.clients.get(event.clientId) : null;
    return client?.url || event.request.referrer || "";
  }

  function address(url) {
    return url.startsWith(ORIGIN) ? url.slice(ORIGIN.length).replace(/#.*/s, "") : "";
  }

  /** What our server has; wabac.js would take a problem for a page that is not archived, so it is kept for later. */
  async function kept(request) {
    try {
      return await recorded(request);
    } catch (problem) {
      request.request.problem = problem;
      return said(502, "");
    }
  }

  /** What our server has for a request, in the form of wabac.js, whose own store hides statuses above 400 (pywb 999). */
  async function recorded(request) {
    const seen = request.request;
    const headers = new Headers();
    for (const name of ["accept", "content-type", "x-requested-with"]) {
      if (seen.headers.has(name)) headers.set(name, seen.headers.get(name));
    }
    if (seen.range) headers.set("range", seen.range);
    headers.set("x-muniment-page", address(seen.referrer));
    headers.set("x-muniment-as", seen.shown ? "document" : seen.destination || "fetch");
    const given = { method: seen.method, headers, redirect: "manual", cache: "no-store" };
    if (BODIES.has(seen.method)) given.body = await seen.clone().arrayBuffer();
    let response = await asked(`/raw/${request.timestamp}/${request.url}`, given);
    if (!response.headers.has("x-redirect-status")) return finished(response); // a page of ours, or an error
    if (DOCUMENTS.has(seen.destination)) response = await MUNIMENT.documents(response);
    const kind = await archived;
    const noRW = MUNIMENT.playlists.isOne(response);
    if (noRW) response = await MUNIMENT.playlists.mended(response, request.timestamp);
    return kind.fromResponse({ url: request.url, response, date: new Date(), noRW, isLive: false, archivePrefix: "/raw/" });
  }

  class Ended extends Error {}

  /** An answer of our server. Another one may answer at its port when it is gone. */
  async function asked(...question) {
    const response = await self.fetch(...question).catch(() => null);
    if (response?.headers.get("x-muniment-replay") !== MUNIMENT.replay) throw new Ended();
    return response;
  }

  /** Nothing answers: the replay is over, and this worker and what pages have stored go with it. */
  async function ended(event, archived) {
    await self.registration.unregister();
    for (const name of await self.caches.keys()) await self.caches.delete(name);
    for (const client of await self.clients.matchAll({ includeUncontrolled: true })) client.postMessage("muniment-over");
    if (!archived) return self.fetch(event.request);
    if (!DOCUMENTS.has(event.request.destination)) return Response.error();
    return finished(new Response(MUNIMENT.over, { status: 503, headers: { "Content-Type": "text/html; charset=utf-8" } }));
  }

  function said(status, text) {
    return finished(new Response(text, { status, headers: { "Content-Type": "text/plain; charset=utf-8" } }));
  }

  function moved(place, status = 302) {
    return finished(new Response(null, { status, headers: { Location: place } }));
  }

  /** An answer as the browser gets it: our policy comes last. */
  function finished(response) {
    const headers = new Headers(response.headers);
    for (const name of MUNIMENT.dropped) headers.delete(name);
    for (const [name, value] of Object.entries(MUNIMENT.headers)) headers.set(name, value);
    const { status, statusText } = response;
    return new Response([101, 204, 205, 304].includes(status) ? null : response.body, { status, statusText, headers });
  }
})();
