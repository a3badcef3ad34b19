import { bench, describe } from 'vitest';
import { count, build } from '../words.js';

const words = Array.from({ length: 100 }, (_, i) => 'banana'.repeat(1 + (i % 3)));
describe('words', () => {
  bench('count (100)', () => { count(words); });
  bench('build map', () => { build(500); });
});
