import { Bench } from "tinybench";
import { count } from "../words.js";

const bench = new Bench();
for (const n of [10, 100]) {
  const text = "word ".repeat(n);
  bench.add(`count n=${n}`, () => count(text));
}

await bench.run();
console.table(bench.table());
