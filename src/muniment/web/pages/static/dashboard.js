// The live parts of the pages. All of them work without it: by forms and links.
const MOST_LINES = 1000;
const MOST_WAITING = 5000;
const NEAR = -40; // its last lines are still in view
const LABELS = { live: "live", waiting: "reconnecting", off: "not live" };
const $ = (id) => document.getElementById(id);
const named = (root, name) => root.querySelector(`[data-testid="${name}"]`);

// -- words and numbers, in the reader's own way; the exact value stays in the page

const WRITTEN = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
const plain = (text) => String(text).slice(0, 4000).replace(UNSEEN, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);

function number(value) {
  const made = document.createElement("data");
  made.value = String(value);
  made.title = String(value);
  made.textContent = WRITTEN.format(value);
  return made;
}

function size(value) {
  const made = number(value);
  let left = value;
  let unit = 0;
  while (left >= 1024 && unit < UNITS.length - 1) { left /= 1024; unit += 1; }
  made.textContent = `${WRITTEN.format(left)} ${UNITS[unit]}`;
  return made;
}

function localise(root) {
  for (const one of root.querySelectorAll("data:not(.bytes)")) {
    const value = Number(one.value);
    if (Number.isFinite(value)) one.textContent = WRITTEN.format(value);
  }
  for (const one of root.querySelectorAll("td time, dd time")) {
    if (/^\d{4}-/.test(one.textContent)) one.textContent = new Date(one.dateTime).toLocaleString();
  }
}

// -- jobs

const FIGURES = { "job-done": "done", "job-queued": "queued", "job-rate": "rate", "job-errors": "errors" };

function bar(parts) {
  const drawn = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  for (const [name, value] of Object.entries({ class: "bar", viewBox: "0 0 100 6", preserveAspectRatio: "none", "aria-hidden": "true" })) drawn.setAttribute(name, value);
  const told = document.createElement("span");
  told.className = "counts";
  for (const one of parts) {
    const part = document.createElementNS(drawn.namespaceURI, "rect");
    for (const [key, value] of Object.entries({ class: `s${one.colour}`, x: one.begin, width: one.width, height: 6 })) part.setAttribute(key, value);
    drawn.append(part);
    const word = document.createElement("span");
    word.className = `c${one.colour}`;
    word.append(`${one.name} `, number(one.count));
    told.append(word, " ");
  }
  return parts.length ? [drawn, told] : [];
}

function fill(row, job) {
  row.dataset.job = job.id;
  row.dataset.state = job.state;
  named(row, "job-state").firstElementChild.textContent = job.state;
  for (const [name, field] of Object.entries(FIGURES)) named(row, name)?.replaceChildren(number(job[field]));
  for (const [name, count] of [["job-done", job.other_done], ["job-errors", job.other_failed]]) {
    const cell = named(row, name);
    if (cell) cell.title = `other hosts: ${count}`;
  }
  named(row, "job-responses")?.replaceChildren(...bar(job.bar));
  named(row, "job-bytes")?.replaceChildren(size(job.bytes));
  named(row, "job-by").textContent = plain(job.by);
  named(row, "job-note").textContent = plain(job.note);
  for (const one of row.querySelectorAll("[data-field]")) {
    const value = job[one.dataset.field];
    if (typeof value === "number") one.replaceChildren(number(value));
    else one.textContent = plain(value);
  }
}

function newRow(job) {
  const row = $("job-row").content.firstElementChild.cloneNode(true);
  const link = named(row, "job-url");
  link.href = `/jobs/${job.id}`;
  link.firstElementChild.textContent = plain(job.url || job.name);
  return row;
}

function fits(job) {
  const wanted = new URLSearchParams(location.search);
  const text = (wanted.get("text") || "").toLowerCase();
  return (!wanted.get("state") || wanted.get("state") === job.state)
    && `${job.id} ${job.url} ${job.name} ${job.note}`.toLowerCase().includes(text)
    && job.by.toLowerCase().includes((wanted.get("by") || "").toLowerCase());
}

function showJobs({ jobs, gone }) {
  const table = $("jobs");
  const body = table?.tBodies[0];
  for (const job of jobs) {
    let row = document.querySelector(`[data-testid="job"][data-job="${job.id}"]`);
    if (!row && body && fits(job) && !new URLSearchParams(location.search).get("from")) {
      row = newRow(job);
      const sorted = new URLSearchParams(location.search).get("sort");
      const next = [...body.rows].find((one) => sorted || Number(one.dataset.job) < job.id);
      body.insertBefore(row, next || null);
    }
    if (!row) continue;
    const link = named(row, "job-url");
    if (link && job.url) link.firstElementChild.textContent = plain(job.url);
    fill(row, job);
    if (body) row.hidden = !fits(job);
  }
  for (const id of gone) body?.querySelector(`[data-job="${id}"]`)?.remove();
  if (body && $("empty")) $("empty").hidden = body.rows.length > 0;
}

// -- the log

const log = $("log");
const logLines = $("lines");
const waiting = [];
let held = false;
let skipped = 0;
let drawing = false;

function kindOf(line) {
  if (line.kind === "fail" || line.kind === "damaged" || line.status >= 500) return "bad";
  if (line.status >= 400) return "warn";
  if (line.status >= 300) return "moved";
  return line.kind === "capture" ? "good" : "note";
}

function lineOf(line) {
  const made = $("line").content.firstElementChild.cloneNode(true);
  const [time, word, link, text] = made.children;
  made.classList.add(kindOf(line));
  made.dataset.kind = line.kind;
  made.dataset.status = line.status || "";
  time.dateTime = line.ts;
  time.title = line.ts;
  time.textContent = line.ts.slice(11, 19);
  word.textContent = line.status || line.kind;
  if (line.url) {
    link.href = `/jobs/${log.dataset.job}/why?url=${encodeURIComponent(line.url)}`;
    link.firstElementChild.textContent = plain(line.url);
  } else link.remove();
  if (line.kind === "capture") text.replaceChildren(size(line.bytes));
  else text.textContent = plain(line.text);
  return made;
}

function draw() {
  drawing = false;
  if (held || !waiting.length) return;
  const lines = waiting.splice(0).slice(-MOST_LINES);
  const made = document.createDocumentFragment();
  for (const line of lines) made.append(lineOf(line));
  logLines.append(made);
  let over = logLines.children.length - MOST_LINES;
  while (over-- > 0) logLines.firstElementChild.remove();
  log.scrollTop = 0;
  tell();
}

function tell() {
  const parts = [];
  if (held && waiting.length) parts.push(`${waiting.length.toLocaleString()} new`);
  if (skipped) parts.push(`${skipped.toLocaleString()} lines were left out: they came too fast. The whole log has them.`);
  $("log-skipped").dataset.skipped = skipped;
  $("log-skipped").textContent = parts.join(" · ");
  const button = $("log-pause");
  button.textContent = held ? (waiting.length ? `${waiting.length.toLocaleString()} new: go on` : "Go on") : "Pause";
  button.setAttribute("aria-pressed", String(held));
}

function takeLog({ lines, skipped: more }) {
  waiting.push(...lines);
  skipped += more;
  if (waiting.length > MOST_WAITING) skipped += waiting.splice(0, waiting.length - MOST_WAITING).length;
  if (held || more) tell();
  if (!drawing && !held) { drawing = true; requestAnimationFrame(draw); }
}

function hold(now) {
  held = now;
  tell();
  if (held) return;
  log.scrollTop = 0;
  draw();
}

if (log) {
  $("log-pause").hidden = false;
  $("log-pause").addEventListener("click", () => hold(!held));
  log.addEventListener("scroll", () => { if (log.scrollTop < NEAR && !held) hold(true); }, { passive: true });
  log.addEventListener("keydown", (event) => {
    if (event.key === " ") { event.preventDefault(); hold(!held); }
    else if (["PageUp", "Home", "ArrowUp"].includes(event.key) && !held) hold(true);
    else if (event.key === "End") hold(false);
  });
}

// -- the stream: one for a visible tab, none for a hidden or left one

const address = document.body.dataset.stream;
let stream = null;
let last = log?.dataset.at || "";
let again = 0;

function connection(state) {
  const shown = document.querySelector('[data-testid="connection"]');
  if (!shown || shown.dataset.state === state) return;
  shown.dataset.state = state;
  shown.querySelector(".word").textContent = LABELS[state];
}

function close() {
  clearTimeout(again);
  stream?.close();
  stream = null;
}

function open() {
  if (!address || stream || document.hidden) return;
  const target = new URL(address, location.href);
  if (last && target.searchParams.get("job")) target.searchParams.set("after", last);
  stream = new EventSource(target);
  connection("waiting");
  stream.onopen = () => connection("live");
  stream.onerror = () => {
    connection("waiting");
    if (stream?.readyState === EventSource.CLOSED) {
      close();
      again = setTimeout(open, 2000);
    }
  };
  const hear = (name, take) => stream.addEventListener(name, (event) => {
    if (event.lastEventId) last = event.lastEventId;
    take(JSON.parse(event.data));
  });
  hear("jobs", showJobs);
  hear("state", ({ job, to }) => { for (const row of document.querySelectorAll(`[data-job="${job}"][data-state]`)) row.dataset.state = to; });
  if (log) hear("log", takeLog);
  hear("gap", () => location.reload());
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) { close(); connection("off"); } else open();
});
addEventListener("pagehide", () => { close(); connection("off"); });
addEventListener("pageshow", open);

// -- what has no stream is asked for again while somebody looks

const every = Number(document.body.dataset.again) * 1000;

async function renew() {
  try {
    const answer = document.hidden ? null : await fetch(location.href);
    const waited = answer?.ok && document.querySelector("[data-waits]");
    if (answer?.redirected || answer?.status === 401 || waited) { location.reload(); return; }
    if (answer?.ok) {
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const shown of document.querySelectorAll("[data-live]")) {
        const other = fresh.getElementById(shown.id);
        if (!other || shown.contains(document.activeElement)) continue;
        localise(other);
        shown.replaceChildren(...other.childNodes);
      }
    }
    if (answer) connection(answer.ok ? "live" : "waiting");
  } catch {
    connection("waiting");
  }
  setTimeout(renew, every);
}

if (every) setTimeout(renew, every);

// -- keys

function rows() {
  return [...document.querySelectorAll("main table.cards tbody tr")].filter((row) => !row.hidden && row.querySelector("a, button"));
}

function step(by) {
  const all = rows();
  const here = all.findIndex((row) => row.contains(document.activeElement));
  const next = all[Math.min(Math.max(here + by, 0), all.length - 1)];
  next?.querySelector("a, button").focus();
  next?.scrollIntoView({ block: "nearest" });
}

addEventListener("keydown", (event) => {
  const inField = event.target.closest("input, textarea, select");
  if (event.key === "Escape" && inField) { inField.blur(); return; }
  if (inField || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "j") step(1);
  else if (event.key === "k") step(-1);
  else if (event.key === "/") { event.preventDefault(); $("filter")?.focus(); }
  else if (event.key === "?") $("keys").showModal();
});

localise(document);
open();
