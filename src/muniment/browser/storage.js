// Gives a document the local storage of its origin that it begins with; what it has itself stays.
(all) => {
  const mine = all[location.origin];
  if (!mine) return;
  try {
    for (const [name, value] of Object.entries(mine)) {
      if (localStorage.getItem(name) === null) localStorage.setItem(name, value);
    }
  } catch (refused) {
    // a document without storage
  }
}
