// Search over the index that build.py writes: one entry a section.
"use strict";

// index: [[address, page, heading, words], ...]. Each word of the query begins a word of the section. Matches in its
// heading count most, then matches in the name of its page. With equal counts guides come before decisions and lab books,
// and shorter sections before longer ones.
function findSections(index, query, most) {
  const wanted = query.toLowerCase().match(/[\p{L}\p{N}_]+/gu) || [];
  const found = [];
  if (!wanted.length) return found;
  for (const [address, page, heading, words] of index) {
    let score = 0;
    const begins = (text, word) => (" " + text.toLowerCase().replace(/[^\p{L}\p{N}_]+/gu, " ")).includes(" " + word);
    for (const word of wanted) {
      const points = 8 * begins(heading, word) + 3 * begins(page, word) + begins(words, word);
      if (!points) {
        score = 0;
        break;
      }
      score += points;
    }
    const later = /^(docs\/decisions|notes)\//.test(address) ? 0.5 : 0;
    if (score) found.push({address, page, heading, score: score - later - words.length / 1e6});
  }
  return found.sort((a, b) => b.score - a.score).slice(0, most);
}

if (typeof module !== "undefined") {
  module.exports = {findSections};
} else {
  document.addEventListener("DOMContentLoaded", () => {
    const root = document.documentElement.dataset.root;
    const field = document.querySelector(".search");
    const results = document.querySelector(".results");
    let loading = null;

    // A script, not a request: pages that are opened from a disk may make none.
    function load() {
      loading ||= new Promise((done) => {
        const script = document.createElement("script");
        script.src = root + "/search-index.js";
        script.onload = done;
        document.head.append(script);
      });
      return loading;
    }

    async function show() {
      await load();
      const found = findSections(globalThis.searchIndex, field.value, 12);
      results.replaceChildren(...found.map(({address, page, heading}) => {
        const item = document.createElement("li");
        const link = document.createElement("a");
        const where = document.createElement("span");
        link.href = root + "/" + address;
        link.textContent = heading;
        where.textContent = page === heading ? "" : page;
        link.append(where);
        item.append(link);
        return item;
      }));
      if (!found.length && field.value.trim()) results.textContent = "Nothing was found";
      results.hidden = !field.value.trim();
    }

    field.hidden = false;
    field.addEventListener("focus", load);
    field.addEventListener("input", show);
    field.addEventListener("keydown", async (event) => {
      if (event.key === "Enter") {
        await show();
        results.querySelector("a")?.click();
      } else if (event.key === "Escape") {
        field.value = "";
        results.hidden = true;
      }
    });
    results.addEventListener("click", () => { results.hidden = true; });
    document.addEventListener("keydown", (event) => {
      if (event.key === "/" && !/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) {
        event.preventDefault();
        field.focus();
      }
    });
  });
}
