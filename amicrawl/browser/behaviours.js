// What is done in a page before it is left: everything a reader could do without filling anything in.
// Defined once for each document; each step returns a promise and ends by itself. `until` is a moment of
// performance.now() after which nothing more is begun.
(() => {
  const pause = (ms) => new Promise((done) => setTimeout(done, ms));
  const attempt = (act) => { try { act(); } catch { /* a page may have replaced anything */ } };
  const MORE = /^\s*(load|show|view|see)\s+more\b|^\s*more\s*(results|posts|items)?\s*$/i;

  const steps = {
    // Lazy images are requested once they are near the window, or at once where they need not be lazy.
    async lazy() {
      for (const each of [...document.querySelectorAll("[loading=lazy]")].slice(0, 2000)) {
        attempt(() => { each.loading = "eager"; });
      }
      for (const each of [...document.querySelectorAll("img[data-src]:not([src])")].slice(0, 500)) {
        attempt(() => { each.src = each.dataset.src; });
      }
    },
    async details() {
      for (const each of [...document.querySelectorAll("details:not([open])")].slice(0, 500)) {
        attempt(() => { each.open = true; });
      }
    },
    async media() {
      for (const each of [...document.querySelectorAll("video, audio")].slice(0, 10)) {
        attempt(() => {
          each.muted = true;
          each.preload = "auto";
          const playing = each.play();
          if (playing) playing.catch(() => {});
        });
      }
    },
    // To the end, and on as long as the page grows, at most 40 windows at once and 30 times.
    async scroll(until) {
      const root = document.scrollingElement || document.documentElement;
      let height = -1;
      for (let round = 0; round < 30 && performance.now() < until; round += 1) {
        if (root.scrollHeight <= height) break;
        height = root.scrollHeight;
        for (let step = 0; step < 40 && performance.now() < until; step += 1) {
          const before = root.scrollTop;
          attempt(() => window.scrollBy(0, window.innerHeight));
          await pause(20);
          if (root.scrollTop === before) break;
        }
        for (let wait = 0; wait < 6 && root.scrollHeight <= height; wait += 1) await pause(100);
      }
      attempt(() => window.scrollTo(0, 0));
    },
    async more(until) {
      for (let round = 0; round < 10 && performance.now() < until; round += 1) {
        const found = [...document.querySelectorAll("button, [role=button]")].slice(0, 2000)
          .find((each) => !each.disabled && !each.closest("form") && each.offsetParent
            && MORE.test((each.innerText || "").slice(0, 60)));
        if (!found) break;
        attempt(() => found.click());
        await pause(300);
      }
    },
    // Pages within the page, which an address of its own names only behind the `#`.
    async routes(until) {
      const here = location.hash;
      const found = new Set([...document.querySelectorAll('a[href^="#/"], a[href^="#!"]')]
        .map((each) => each.getAttribute("href")));
      for (const each of [...found].slice(0, 30)) {
        if (performance.now() > until) break;
        attempt(() => { location.hash = each; });
        await pause(150);
      }
      if (found.size) attempt(() => { location.hash = here; });
    },
  };

  const roots = function* (node, depth = 0) {
    yield node;
    if (depth > 8) return;
    for (const each of node.querySelectorAll("*")) if (each.shadowRoot) yield* roots(each.shadowRoot, depth + 1);
  };

  return {
    run: (name, most) => steps[name](performance.now() + most),
    // Links as a reader finds them, those in open shadow trees included.
    links: (most) => {
      const found = new Map();
      for (const root of roots(document)) {
        for (const each of root.querySelectorAll("a[href], area[href], link[href][rel]")) {
          if (found.size >= most) break;
          const isLink = each.localName !== "link";
          if (!isLink && !/\b(next|prev|canonical|alternate)\b/i.test(each.rel)) continue;
          const target = each.href && each.href.baseVal !== undefined
            ? new URL(each.href.baseVal, document.baseURI).href : each.href;
          if (/^https?:/i.test(target)) found.set(target.split("#")[0], isLink ? "a href" : "link rel");
        }
      }
      return [...found].map(([url, where]) => [url.slice(0, 8192), where]);
    },
    text: (most) => [document.title.slice(0, 1000), (document.body ? document.body.innerText : "").slice(0, most)],
  };
})()
