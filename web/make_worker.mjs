// Makes dist/worker.js, the one script of the worker in browsers: `node make_worker.mjs [FOLDER]`, by default web/dist.
// It only needs the .wasm files in its folder, so bundlers can copy it to any place under any name.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('./', import.meta.url));
const dist = process.argv[2] || join(here, 'dist');
const read = (folder, name) => readFileSync(join(folder, name), 'utf8');

// Emscripten's scripts look around for Node, and start their threads from a file of their own.
const hidden = `var process, define, __filename, __dirname, Worker = function () { return new self.Worker(self.location.href, { name: 'oriel-thread' }); };`;
const glue = (name) => `${hidden}\n${read(dist, name)}\nmodule.exports = createOriel;`;
// A thread loads the module's script by an address. Here it has the script already.
const thread = () => `var process, importScripts = function () {}, createOriel = require('./oriel-threads.js');\n${read(dist, 'oriel-threads.worker.js')}`;

const scripts = {};
for (const name of ['values', 'host', 'engine', 'sources', 'worker', 'browser']) {
  scripts[`./${name}.js`] = read(join(here, 'src/engine'), `${name}.js`);
}
// A build without threads has one script.
for (const [name, text] of [['oriel.js', glue], ['oriel-threads.js', glue], ['oriel-threads.worker.js', thread]]) {
  if (existsSync(join(dist, name))) scripts[`./${name}`] = text(name);
}

const modules = Object.entries(scripts).map(([name, text]) => `${JSON.stringify(name)}: function (module, exports, require) {\n${text}\n}`);
writeFileSync(join(dist, 'worker.js'), `// Made by make_worker.mjs.
(function () {
var modules = {
${modules.join(',\n')}
};
var made = {};
function load(name) {
  if (!made[name]) modules[name](made[name] = { exports: {} }, made[name].exports, load);
  return made[name].exports;
}
load('./browser.js');
})();
`);
