// Behaviors of a page: what a reader would do to see all of it. Runs in a world of its own, apart from the page's.
// It clicks nothing that submits, deletes, buys, logs out, or leads away.
async (names, budgetMs) => {
  const end = Date.now() + budgetMs;
  const left = () => end - Date.now();
  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, Math.max(0, Math.min(ms, left()))));
  const done = [];

  function* everything(root) {
    for (const element of root.querySelectorAll("*")) {
      yield element;
      if (element.shadowRoot) yield* everything(element.shadowRoot);
    }
  }
  const words = (element) =>
    [element.innerText || "", element.value || "", element.getAttribute("aria-label") || "", element.title || "",
      element.id, String(element.className && element.className.baseVal !== undefined ? element.className.baseVal : element.className || ""),
      element.getAttribute("name") || "", element.getAttribute("formaction") || "", element.getAttribute("onclick") || ""].join(" ").slice(0, 600);
  const HARM = /\b(?:log ?-?out|sign ?-?out|log ?-?off|delete|remove|destroy|erase|unsubscribe|buy|purchase|order|checkout|pay|cart|basket|donate|subscribe|submit|send|post|save|confirm|accept|agree|report|block|vote|like|follow|share|download|print|reset|cancel|close account|abmelden|löschen|kaufen|senden|supprimer|acheter)/i;
  const visible = (element) => {
    const box = element.getBoundingClientRect();
    return box.width > 0 && box.height > 0 && getComputedStyle(element).visibility !== "hidden";
  };
  const leads = (element) => {
    const link = element.closest("a[href], area[href]");
    if (!link) return false;
    const href = link.getAttribute("href").trim();
    return href !== "" && !href.startsWith("#") && !/^javascript:\s*(?:void\(0\)|;)?;?$/i.test(href);
  };
  const submits = (element) => {
    const button = element.closest("button, input");
    if (!button) return Boolean(element.closest("label")) && Boolean(element.closest("form"));
    const type = (button.getAttribute("type") || (button.tagName === "BUTTON" ? "submit" : "text")).toLowerCase();
    return Boolean(button.form) && type !== "button" || ["submit", "image", "reset", "file"].includes(type) && Boolean(button.form);
  };
  const harmless = (element) =>
    visible(element) && !element.disabled && !leads(element) && !submits(element) && !HARM.test(words(element));

  const scroll = async () => {
    let height = 0;
    let growths = 0;
    let still = 0;
    const step = Math.max(200, Math.floor(innerHeight * 0.8));
    while (left() > 0 && growths < 100) {
      const root = document.scrollingElement || document.documentElement;
      if (!root) return;
      scrollBy({ top: step, behavior: "instant" });
      await pause(60);
      if (scrollY + innerHeight >= root.scrollHeight - 2) {
        if (root.scrollHeight > height) {
          if (height) growths += 1;
          height = root.scrollHeight;
          still = 0;
          await pause(250);
        } else if (++still >= 3) {
          break;
        } else {
          await pause(200);
        }
      }
    }
    for (const box of everything(document)) {
      if (left() <= 0) break;
      if (box.scrollHeight > box.clientHeight + 50 && box.clientHeight > 150 && /auto|scroll/.test(getComputedStyle(box).overflowY)) {
        for (let at = 0; at < box.scrollHeight && left() > 0; at += box.clientHeight) {
          box.scrollTop = at;
          await pause(40);
        }
      }
    }
    scrollTo({ top: 0, behavior: "instant" });
    done.push("scroll");
  };

  const MORE = /^\W*(?:load|show|view|see|read|more|next)?\W*(?:\d+ )?(?:more|older|mehr|plus|más|weitere?)\b[\w\s]{0,30}\W*$|^\W*(?:load|show) (?:all|more|next|older)\b[\w\s]{0,30}\W*$|^\W*mehr (?:laden|anzeigen)\W*$/i;
  const more = async () => {
    let clicks = 0;
    while (left() > 0 && clicks < 100) {
      let clicked = false;
      for (const element of everything(document)) {
        if (!element.matches("button, [role=button], a, summary, [onclick], input[type=button]")) continue;
        const text = (element.innerText || element.value || element.getAttribute("aria-label") || "").trim();
        if (text.length > 60 || !MORE.test(text) || !harmless(element)) continue;
        element.click();
        clicks += 1;
        clicked = true;
        await pause(400);
        break;
      }
      if (!clicked) break;
    }
    done.push("more");
  };

  const details = async () => {
    for (const element of everything(document)) {
      if (left() <= 0) break;
      if (element.tagName === "DETAILS" && !element.open) element.open = true;
    }
    let opened = 0;
    for (const element of [...everything(document)]) {
      if (left() <= 0 || opened >= 200) break;
      if (element.getAttribute("aria-expanded") === "false" && element.matches("button, [role=button], [role=tab]") && harmless(element)) {
        element.click();
        opened += 1;
        await pause(30);
      }
    }
    await pause(100);
    done.push("details");
  };

  const play = async () => {
    for (const media of everything(document)) {
      if (left() <= 0) break;
      if (media.tagName !== "VIDEO" && media.tagName !== "AUDIO") continue;
      media.muted = true;
      media.preload = "auto";
      try {
        await Promise.race([media.play(), pause(2000)]);
      } catch { /* it has nothing to play, or may not */ }
    }
    await pause(300);
    done.push("play");
  };

  const NEXT = /\b(?:next|forward|right|weiter|suivant)\b/i;
  const carousel = async () => {
    for (const box of [...everything(document)]) {
      if (left() <= 0) break;
      if (!/carousel|slider|swiper|slick|splide|gallery/i.test(`${box.className} ${box.id} ${box.getAttribute("aria-roledescription") || ""}`)) continue;
      const button = [...box.querySelectorAll("button, [role=button], a")].find(
        (one) => NEXT.test(`${words(one)}`) && harmless(one));
      for (let at = 0; button && at < 20 && left() > 0; at += 1) {
        button.click();
        await pause(120);
      }
    }
    done.push("carousel");
  };

  const known = { scroll, more, details, play, carousel };
  for (const name of names) {
    if (left() <= 0) break;
    if (known[name]) await known[name]();
  }
  return done;
}
