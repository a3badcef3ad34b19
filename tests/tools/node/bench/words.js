import { Bench } from 'tinybench';
import { count, build } from '../words.js';

const words = Array.from({ length: 100 }, (_, i) => 'banana'.repeat(1 + (i % 3)));
const bench = new Bench({ name: 'words', time: 500 });
bench.add('count (100)', () => count(words)).add('build map', () => build(500));
await bench.run();
console.table(bench.table());
