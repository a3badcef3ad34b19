import { bench } from "vitest";
import { count } from "../words.js";

for (const n of [10, 100]) {
  const text = "word ".repeat(n);
  bench(`count n=${n}`, () => {
    count(text);
  });
}
