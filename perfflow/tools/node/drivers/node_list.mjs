// Prints the names of benchmarks, one per line.
//
//     node node_list.mjs SETTINGS
//
// SETTINGS is a JSON list of processes, each with `argv`, `env`, `out`, the file with its results, and `prefix`, which
// begins its names. A process that leaves no results ends it with the status 1.

import { existsSync, readFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';

for (const { argv, env, out, prefix } of JSON.parse(process.argv[2])) {
  const done = spawnSync(argv[0], argv.slice(1), { env: { ...process.env, ...env }, stdio: ['ignore', 2, 2] });
  const results = existsSync(out) ? JSON.parse(readFileSync(out)) : {};
  const groups = (results.files ?? []).flatMap((file) => file.groups);
  const names = [
    ...(results.benchmarks ?? []).map((benchmark) => prefix + benchmark.name),
    ...groups.flatMap((group) => group.benchmarks.map((benchmark) => `${group.fullName} > ${benchmark.name}`)),
  ];
  if (!names.length) process.exit(done.status || 1);
  for (const name of names) console.log(name);
}
