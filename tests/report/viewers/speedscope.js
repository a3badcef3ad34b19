"use strict";
// Reads files with the importer in the bundle of speedscope's npm package, and prints what each function comes to.
// usage: node speedscope.js BUNDLE FILE ...
const fs = require("fs");
const vm = require("vm");
const [bundle, ...files] = process.argv.slice(2);
let code = fs.readFileSync(bundle, "utf8");
const importer = code.match(/"Importing as speedscope json file"\),([\w$]+)\(/);
if (!importer) throw new Error("the importer is not where it was in the bundle of speedscope 1.25.0");
code = code.replace("(()=>{", `(()=>{globalThis.importer=${importer[1]};`);
// The page is not drawn here: what the bundle asks a browser for is nothing, and asking for the page's body ends it.
const nothing = new Proxy(function () {}, {
  get: (_, key) => (key === Symbol.toPrimitive ? () => "" : nothing),
  apply: () => nothing,
  construct: () => nothing,
});
const body = {
  get body() {
    throw new Error("no page");
  },
};
const context = {
  document: Object.assign(body, { createElement: () => nothing, head: nothing, addEventListener() {} }),
  console: { log() {}, warn() {}, error() {} },
  navigator: { platform: "", userAgent: "" },
  location: { hash: "", protocol: "file:" },
  ...{ URL, TextDecoder, TextEncoder, performance, Buffer, atob, btoa, fetch: nothing, localStorage: nothing },
  ...{ setTimeout() {}, requestAnimationFrame() {}, addEventListener() {}, matchMedia: () => nothing },
};
for (const name of ["window", "self", "globalThis"]) context[name] = context;
process.on("unhandledRejection", () => {});
try {
  vm.runInNewContext(code, context);
} catch (error) {
  if (!context.importer) throw error;
}
const read = files.map((file) => {
  const group = context.importer(JSON.parse(fs.readFileSync(file, "utf8")));
  return group.profiles.map((profile) => {
    const functions = {};
    profile.forEachFrame((frame) => {
      functions[frame.name] = [frame.getSelfWeight(), frame.getTotalWeight()];
    });
    return { name: profile.getName(), unit: profile.getWeightUnit(), total: profile.getTotalWeight(), functions };
  });
});
fs.writeSync(1, JSON.stringify(read));
