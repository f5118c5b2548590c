// The worker says that the replay is over: what archived pages have stored goes.
(() => {
  const workers = navigator.serviceWorker;
  if (!workers) return;
  const stores = [localStorage, sessionStorage];
  const databases = indexedDB;
  const { clear } = Storage.prototype;

  workers.addEventListener("message", async ({ data, source }) => {
    if (data !== "muniment-over" || !(source instanceof ServiceWorker)) return;
    for (const store of stores) clear.call(store);
    for (const { name } of (await databases.databases?.()) ?? []) databases.deleteDatabase(name);
  });
  workers.startMessages();
})();
