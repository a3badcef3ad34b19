// Similarities of texts, and the best match of each.
const { compareTwoStrings, findBestMatch } = require("..");

let state = Number(process.argv[2]) % 2147483647 || 1;
const draw = (below) => (state = (state * 48271) % 2147483647) % below;
const text = (length) => Array.from({ length }, () => "abcdefghij é日"[draw(13)]).join("");
const targets = Array.from({ length: 300 }, () => text(200 + draw(400)));
for (let one = 0; one < 12; one++) {
  const { bestMatch, bestMatchIndex, ratings } = findBestMatch(text(300), targets);
  console.log(bestMatchIndex, bestMatch.rating, ratings.reduce((sum, { rating }) => sum + rating, 0));
}
console.log(compareTwoStrings("", "a"), compareTwoStrings("ab", "ab"), compareTwoStrings("aaa", "aa"));
