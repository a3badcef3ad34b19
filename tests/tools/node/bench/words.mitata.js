import { run, bench, group } from 'mitata';
import { count, build } from '../words.js';

const words = Array.from({ length: 100 }, (_, i) => 'banana'.repeat(1 + (i % 3)));
bench('count words', () => count(words));
bench('build $n', function* (state) {
  const n = state.get('n');
  yield () => build(n);
}).args('n', [10, 100]);
await run();
