import { Bench } from 'tinybench';

const bench = new Bench();
bench.add('good', () => Math.sqrt(2)).add('bad', () => { throw new TypeError('no data'); });
await bench.run();
