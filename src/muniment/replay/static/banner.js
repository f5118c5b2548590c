// Keeps the banner true to what the frame shows, and counts what the page asked for in vain. What an archived page says
// of itself is believed only if the archive has it, and nothing of it is ever markup.

const MOST_URL = 8000;
const FOCUSED = "a, button";
const PAUSE_MS = 250;
const LOOKS_MS = [300, 500, 1000, 1000, 2000, 2000, 4000, 4000, 8000];
const UNKNOWN = "The frame shows something that is not in this archive as a page. The line above is about the page before it.";
const RENAMED = "The page has given itself another address, which is not in this archive.";
const ENDED = "The replay has ended: nothing answers here any more.";

const header = document.querySelector(".banner");
const frame = document.querySelector("[data-testid=replay-frame]");
const pause = (ms) => new Promise((over) => setTimeout(over, ms));

function element(tag, text, given = {}) {
  const made = document.createElement(tag);
  made.textContent = text;
  for (const [name, value] of Object.entries(given)) made.setAttribute(name, value);
  return made;
}

// -- what the frame shows

/** The address of the frame's document as `TIME/URL`. */
let view = frame.src.slice(new URL(frame.src).origin.length).replace(/^\/at\/(\d+)[a-z]*_?\//, "$1/");
let latest = view;
let claimed = null;
let following = false;

/** A document has said what it is since the frame loaded last; each has a number of its own. */
let reported = false;
let born = 0;
let shown = Number(frame.dataset.shown);

addEventListener("message", ({ source, origin, data }) => {
  if (source !== frame.contentWindow || origin !== new URL(frame.src).origin || data?.muniment !== "page") return;
  const { at, url, view: of = `${at}/${url}` } = data;
  if (![at, url, of].every((one) => typeof one === "string" && one.length < MOST_URL)) return;
  if (!/^\d{4,20}$/.test(at) || !/^\d{4,20}\/./s.test(of)) return;
  reported ||= data.born !== born;
  born = data.born;
  claim(at, url.replace(/#.*/s, ""), of.replace(/#.*/s, ""));
});

/** A document that is no HTML says nothing of itself: the server has seen which one it gave last. */
frame.addEventListener("load", async () => {
  await pause(PAUSE_MS);
  const said = reported;
  reported = false;
  if (said) return;
  const { number = 0, view: seen = "", reached = true } = (await asked("/latest")) ?? {};
  if (!reached && !frame.src.startsWith(frame.dataset.fallback)) {
    // this browser does not resolve the name of the archived pages
    frame.src = frame.dataset.fallback + frame.src.slice(new URL(frame.src).origin.length);
    return;
  }
  const [last, at, url] = /^(\d+)\/(.+)$/s.exec(seen) ?? [];
  // a page that follows at once may have reported before the load of the one before it was over
  if (url && number > shown && last !== latest) claim(at, url, last);
  shown = Math.max(shown, number);
});

function claim(at, url, of) {
  latest = of;
  claimed = { at, url, of };
  if (!following) follow();
}

/** Look each claim up, the last one at the latest, and never more than a few in a second. */
async function follow() {
  following = true;
  while (claimed) {
    const page = claimed;
    claimed = null;
    await show(page);
    await pause(PAUSE_MS);
  }
  following = false;
}

async function show({ at, url, of }) {
  let told = await bannerOf(`${at}/${url}`);
  let note = told === null ? ENDED : told ? "" : UNKNOWN;
  if (told === undefined && of !== `${at}/${url}` && (told = await bannerOf(of))) note = RENAMED;
  header.classList.toggle("unknown", !told);
  if (told) {
    replace(told.querySelector(".banner"));
    document.title = told.title;
  }
  if (note) say(note);
  if (view !== of) {
    view = of;
    list([]);
  }
  lookAgain();
}

function say(note) {
  const made = element("p", note, { class: "note", "data-testid": "replay-note" });
  header.querySelector("[data-live=notes]").replaceChildren(made);
}

/** Our own page about `TIME/URL`; undefined when the archive does not have it, null when nothing answers. */
async function bannerOf(address) {
  const answer = await fetch(`/at/${address}`).catch(() => null);
  const text = await answer?.text().catch(() => null);
  if (text == null) return null;
  const told = new DOMParser().parseFromString(text, "text/html");
  return answer.ok && told.querySelector(".banner") ? told : undefined;
}

function replace(fresh) {
  for (const part of header.querySelectorAll("[data-live]")) {
    const other = fresh.querySelector(`[data-live="${part.dataset.live}"]`);
    if (!other || other.outerHTML === part.outerHTML) continue;
    const place = [...part.querySelectorAll(FOCUSED)].indexOf(document.activeElement);
    part.replaceWith(other);
    if (place >= 0) [...other.querySelectorAll(FOCUSED)].slice(0, place + 1).at(-1)?.focus();
  }
  Object.assign(header.dataset, { at: fresh.dataset.at, url: fresh.dataset.url });
  scrollTimeline();
}

function scrollTimeline() {
  const line = header.querySelector(".timeline");
  const current = line?.querySelector("[aria-current]");
  if (current) line.scrollLeft = current.offsetLeft - (line.clientWidth - current.offsetWidth) / 2;
}

async function asked(path) {
  const answer = await fetch(path).catch(() => null);
  return answer?.ok ? answer.json().catch(() => null) : null;
}

// -- what is missing

const missing = header.querySelector(".missing");
const details = missing.querySelector("details");
const summary = missing.querySelector("[data-testid=replay-missing]");
const button = missing.querySelector("[data-testid=replay-outline]");
let rows = null;
let looks = 0;
let timer = 0;

function lookAgain() {
  looks = 0;
  clearTimeout(timer);
  timer = setTimeout(look, LOOKS_MS[0]);
}

async function look() {
  const of = view;
  const told = await asked(`/missing?view=${encodeURIComponent(of)}`);
  if (!told) say(ENDED);
  if (told?.missing && of === view) list(told.missing);
  looks += 1;
  clearTimeout(timer);
  timer = setTimeout(look, LOOKS_MS[Math.min(looks, LOOKS_MS.length - 1)]);
}

document.addEventListener("visibilitychange", () => document.hidden || lookAgain());

/** Show what is missing, if it has changed; what a page has got since is outlined in any case. */
function list(found) {
  if (pressed()) outline(found);
  if (JSON.stringify(found) === JSON.stringify(rows)) return;
  rows = found;
  summary.dataset.count = rows.length;
  summary.textContent = rows.length ? `${rows.length} missing` : "Nothing missing";
  button.disabled = !rows.length && !pressed();
  const all = element("li", "All that this page has asked for so far is in the archive.");
  details.querySelector("ul").replaceChildren(...(rows.length ? rows.map(item) : [all]));
}

function item(row) {
  const made = element("li", "", { "data-testid": "missing-row", "data-url": row.url, "data-reason": row.reason });
  made.append(
    element("strong", row.reason.replace("-", " ")), " ",
    element("span", row.as || "data", { class: "as" }), " ",
    element("span", row.url, { class: "url" }), " ",
    element("small", row.text),
  );
  if (row.at) made.append(" ", element("a", `captured ${time(row.at)}`, { href: `/at/${row.at}/${row.url}` }));
  return made;
}

function time(at) {
  return at.replace(/^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)\d*$/, "$1-$2-$3 $4:$5:$6 UTC");
}

function pressed() {
  return button.getAttribute("aria-pressed") === "true";
}

/** Have the page and its frames outline what is missing in them; nothing, to stop. */
function outline(found) {
  const named = found.map(({ url, reason }) => ({ url, reason }));
  const to = new URL(frame.src).origin;
  const tell = (window, depth) => {
    window.postMessage({ muniment: "outline", missing: named }, to);
    for (let number = 0; depth && number < Math.min(window.length, 50); number += 1) tell(window[number], depth - 1);
  };
  tell(frame.contentWindow, 4);
}

button.addEventListener("click", () => {
  button.setAttribute("aria-pressed", !pressed());
  outline(pressed() ? rows : []);
  lookAgain();
});

details.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  details.open = false;
  summary.focus();
});

missing.hidden = false;
list([]);
lookAgain();
scrollTimeline();
