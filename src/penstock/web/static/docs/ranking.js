// Rank the sections of the documentation by the words of a reader, who may not know the words of the pages.

const STOP = new Set("a an and each per are at be can did do does for from get has have how i if in is it me my of on or our should so that the them they this to want was we what when where which who why will with you your".split(" "));
// What readers say, and what the pages call it.
const SYNONYMS = {
  add: "switch credential", broken: "error", budget: "limit", charge: "cost", colleague: "key", fail: "error free", free: "mock nothing", invoice: "cost",
  local: "localhost machine", money: "cost", offline: "replay", old: "stored", paid: "pay", password: "key", person: "key", price: "cost", retry: "repeat",
  spend: "cost pay mock", team: "key", teammate: "key", test: "replay mock", token: "key", user: "key", without: "nothing replay",
};
const QUIETER = [[/^\/docs\/(add-a-provider|decisions|tour|contributing|plugins|changelog|glossary)/, 0.4], [/^\/docs\/(cookbook|endpoints|benchmarks)|^\/docs(#|$)/, 0.6]];

// Cuts the usual endings, so that "upgrading", "upgrades" and "upgrade" are one word.
export function stem(word) {
  const short = word.replace(/(ings?|edly|ed|ly|ies|es|s|e)$/, "");
  return short.length >= 3 ? short : word;
}

const others = new Map(Object.entries(SYNONYMS).map(([word, text]) => [stem(word), text.split(" ").map(stem)]));
const wordsOf = (text) => text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [];
const stems = (text) => ` ${[...new Set(wordsOf(text).map(stem))].join(" ")} `;

// A row of the index with what `find` looks at.
export function prepared([url, page, heading, text]) {
  return { url, page, heading, text, lower: text.toLowerCase(), stems: { heading: stems(heading), page: stems(page), text: stems(text) } };
}

// How well one word fits a section: its heading counts most. Beginnings of words count too, for those who are still typing.
function fit({ stems: { heading, page, text } }, word) {
  const points = (part, whole, start) => (part.includes(` ${word} `) ? whole : part.includes(` ${word}`) ? start : 0);
  return points(heading, 8, 5) + points(page, 6, 3) + points(text, 2, 1);
}

function scores(rows, word) {
  const alike = others.get(word) ?? [];
  const found = rows.map((row) => Math.max(fit(row, word), ...alike.map((other) => fit(row, other) / 2)));
  const count = found.filter(Boolean).length;
  const rarity = Math.log(1 + rows.length / (1 + count)); // a word that is on every page says little
  return found.map((points) => points * rarity);
}

// The best sections for a question, each with the word to show it by. Sections with all words come first, but one is enough.
export function find(rows, question, most) {
  const all = wordsOf(question);
  const asked = all.filter((word) => !STOP.has(word));
  const words = [...new Set((asked.length ? asked : all).map(stem))];
  if (!words.length) return [];
  const phrase = question.trim().toLowerCase();
  const byWord = words.map((word) => scores(rows, word));
  const ranked = rows.map((row, place) => {
    const points = byWord.map((found) => found[place]);
    const share = points.filter(Boolean).length / words.length;
    const exact = row.heading.toLowerCase().includes(phrase) ? 40 : row.lower.includes(phrase) ? 10 : 0;
    const sum = points.reduce((total, each) => total + Math.sqrt(each), 0) ** 2;
    return { row, points: (share ** 2 * sum + (share ? exact : 0)) * (QUIETER.find(([pages]) => pages.test(row.url))?.[1] ?? 1) };
  });
  const found = ranked.filter(({ points }) => points).sort((one, other) => other.points - one.points).slice(0, most);
  return found.map(({ row }) => ({ row, word: words.find((word) => row.lower.includes(word)) }));
}
