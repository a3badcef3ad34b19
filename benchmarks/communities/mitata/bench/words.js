import { bench, do_not_optimize, run } from "mitata";
import { count } from "../words.js";

for (const n of [10, 100]) {
  const text = "word ".repeat(n);
  bench(`count n=${n}`, () => do_not_optimize(count(text)));
}

await run();
