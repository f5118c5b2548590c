// Ends all animations, and waits for fonts, some frames and an idle moment, which a browser without a window may put off.
(async () => {
  const roots = [];
  const take = (root) => {
    roots.push(root);
    for (const one of root.querySelectorAll("*")) {
      if (one.shadowRoot) take(one.shadowRoot);
      if (one.localName === "iframe") try { take(one.contentDocument); } catch { /* another origin */ }
    }
  };
  take(document);
  for (const root of roots) for (const one of root.getAnimations()) try { one.finish(); } catch { one.cancel(); }
  for (const root of roots) await root.fonts?.ready;
  for (let at = 0; at < 10; at += 1) await new Promise(requestAnimationFrame);
  await new Promise((done) => requestIdleCallback(done, { timeout: 1000 }));
  return true;
})()
