// Runs before the first paint, so that the page does not flash in the other colour scheme.
try {
  const scheme = localStorage.getItem("amicrawl-scheme");
  if (scheme === "light" || scheme === "dark") document.documentElement.dataset.theme = scheme;
} catch { /* storage is forbidden: the system's scheme it is */ }
