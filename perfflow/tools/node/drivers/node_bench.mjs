// Lists or runs benchmarks of tinybench or mitata, one by one, without a change of their file.
//
//     PERFFLOW_BENCH=SETTINGS node --import node_bench.mjs FILE
//
// SETTINGS is JSON: `out`, the file for the results; `list`, to list them only; `only`, the names to run, [] for all;
// `seconds`, the time of each benchmark. The results are JSON: `benchmarks`, a list of names with `error`, or with
// `figures` of the samples of one iteration in ns: min, p50, p99, max, mean and n.

import { createRequire, register } from 'node:module';
import { writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const { out, list, only, seconds } = JSON.parse(process.env.PERFFLOW_BENCH);
const found = [];
const wanted = (name) => !list && (only.length === 0 || only.includes(name));
const named = (...parts) => parts.filter(Boolean).join('/');

globalThis[Symbol.for('perfflow.benchmarks')] = {
  named,
  seconds,
  // Notes a benchmark; returns whether it is to run.
  begin(name) {
    const note = { name };
    if (list || wanted(name)) found.push(note);
    return wanted(name) ? note : null;
  },
};
process.on('exit', () => writeFileSync(out, JSON.stringify({ benchmarks: found }) + '\n'));

// The file's own tinybench, which may be another one than that of any dependency.
let tinybench;
try {
  tinybench = createRequire(pathToFileURL(process.argv[1])).resolve('tinybench');
} catch {}
if (tinybench) {
  const { Bench } = await import(pathToFileURL(tinybench).href);
  for (const method of ['run', 'runSync']) {
    const original = Bench.prototype[method];
    Bench.prototype[method] = function () {
      const notes = new Map();
      for (const task of [...this.tasks]) {
        const note = globalThis[Symbol.for('perfflow.benchmarks')].begin(named(this.name, task.name));
        if (note) notes.set(task.name, note);
        else this.remove(task.name);
      }
      Object.assign(this, { time: seconds * 1000, warmupTime: seconds * 200, warmupIterations: 4 });
      const tell = () => {
        for (const task of this.tasks) {
          const { latency, error } = task.result ?? {};
          const note = notes.get(task.name);
          if (!note) continue;
          if (error || !latency) {
            note.error = String(error?.message ?? error ?? 'it has no result');
            continue;
          }
          const { min, p50, p99, max, mean, samplesCount, samples } = latency;
          const scaled = Object.entries({ min, p50, p99, max, mean }).map(([key, ms]) => [key, ms * 1e6]);
          note.figures = { ...Object.fromEntries(scaled), n: samplesCount ?? samples?.length };
        }
      };
      const result = original.apply(this, arguments);
      if (typeof result?.then !== 'function') return tell(), result;
      return result.then((value) => (tell(), value));
    };
  }
}

// mitata is measured by its own function, without its four calibrations and with another time for each benchmark.
const hooks = `
export async function resolve(specifier, context, next) {
  const resolved = await next(specifier, context);
  const isOuter = specifier === 'mitata' && !context.parentURL?.includes('perfflow-outer');
  return isOuter ? { ...resolved, url: resolved.url + '?perfflow-outer' } : resolved;
}
export async function load(url, context, next) {
  if (!url.endsWith('?perfflow-outer')) return next(url, context);
  const inner = JSON.stringify(url.replace('?perfflow-outer', ''));
  const source = \`
    import * as mitata from \${inner};
    export * from \${inner};
    const told = globalThis[Symbol.for('perfflow.benchmarks')];
    const registered = [];
    let groups = [];
    export function bench(...words) {
      const made = mitata.bench(...words);
      registered.push([groups.at(-1), made]);
      return made;
    }
    export function group(name, body) {
      if (typeof name === 'function') return mitata.group(name);
      return mitata.group(name, () => {
        groups.push(name);
        const result = body();
        const leave = (value) => (groups.pop(), value);
        return typeof result?.then === 'function' ? result.then(leave) : leave(result);
      });
    }
    function* runs(made) {
      let all = [{}];
      for (const [key, values] of Object.entries(made._args ?? {})) {
        all = all.flatMap((args) => values.map((value) => ({ ...args, [key]: value })));
      }
      for (const args of all) {
        let name = made._name;
        for (const [key, value] of Object.entries(args)) name = name.replaceAll('$' + key, value);
        yield [name, args];
      }
    }
    export async function run() {
      const benchmarks = [];
      for (const [group, made] of registered.splice(0)) {
        for (const [name, args] of runs(made)) {
          const note = told.begin(told.named(group, name));
          if (!note) continue;
          try {
            const stats = await mitata.measure(made.f, { args, min_cpu_time: told.seconds * 1e9 });
            const { min, p50, p99, max, avg, samples } = stats;
            note.figures = { min, p50, p99, max, mean: avg, n: samples.length };
            benchmarks.push({ alias: made._name, runs: [{ name, args, stats }] });
          } catch (error) {
            note.error = String(error?.message ?? error);
          }
        }
      }
      return { benchmarks, layout: [], context: {} };
    }
  \`;
  return { format: 'module', source, shortCircuit: true };
}`;
register('data:text/javascript,' + encodeURIComponent(hooks));
