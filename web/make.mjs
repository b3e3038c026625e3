// Makes what the package needs besides its sources: `node make.mjs WHAT [FOLDER]`.
//
//   worker   dist/worker.js, the one script of the worker in browsers; FOLDER: by default web/dist
//   types    dist/options.d.ts, the option types of the module; FOLDER: by default web/dist
//   page     the page; FOLDER: by default build/page. Prints its size, and exits with 1 if that is more than 12 MB.
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const here = fileURLToPath(new URL('./', import.meta.url));
const require = createRequire(import.meta.url);

// It only needs the .wasm files in its folder, so bundlers can copy it to any place under any name.
function makeWorker(dist = join(here, 'dist')) {
  const read = (folder, name) => readFileSync(join(folder, name), 'utf8');

  // Emscripten's scripts look around for Node, and start their threads from a file of their own.
  const hidden = `var process, define, __filename, __dirname, Worker = function () { return new self.Worker(self.location.href, { name: 'oriel-thread' }); };`;
  const glue = (name) => `${hidden}\n${read(dist, name)}\nmodule.exports = createOriel;`;
  // A thread loads the module's script by an address. Here it has the script already.
  const thread = () => `var process, importScripts = function () {}, createOriel = require('./oriel-threads.js');\n${read(dist, 'oriel-threads.worker.js')}`;

  const scripts = {};
  for (const name of ['values', 'host', 'engine', 'worker', 'browser']) {
    scripts[`./${name}.js`] = read(join(here, 'src/engine'), `${name}.js`);
  }
  // A build without threads has one script.
  for (const [name, text] of [['oriel.js', glue], ['oriel-threads.js', glue], ['oriel-threads.worker.js', thread]]) {
    if (existsSync(join(dist, name))) scripts[`./${name}`] = text(name);
  }

  const modules = Object.entries(scripts).map(([name, text]) => `${JSON.stringify(name)}: function (module, exports, require) {\n${text}\n}`);
  writeFileSync(join(dist, 'worker.js'), `// Made by make.mjs.
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
}

/** The option list of a built module, as `oriel options --json` prints it. */
export async function optionList(dist = join(here, 'dist')) {
  const { Engine, memoryForPlans } = require('./src/engine/engine.js');
  const code = await WebAssembly.compile(readFileSync(join(dist, 'oriel.wasm')));
  const factory = { create: require(join(dist, 'oriel.js')) };
  return (await Engine.start({ factory, code, threads: 0, ...memoryForPlans })).optionList();
}

const camel = (name) => name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
const word = (choice) => (choice.endsWith(':N') ? `\`${choice.slice(0, -1)}\${number}\`` : JSON.stringify(choice));

function typeOf({ name, type, most, choices, help }) {
  const words = (choices || []).filter((choice) => type === 'choice' || !/^\d/.test(choice)).map(word);
  switch (type) {
    case 'bytes': return 'number | string';
    case 'count': return ['number', ...(most > 2 ** 53 ? ['bigint'] : []), ...(name === 'date' ? ['Date'] : []), ...words].join(' | ');
    case 'number': return 'number';
    case 'flag': return 'boolean';
    case 'choice': return [...words, ...words.filter((one) => /^"\d+"$/.test(one)).map(JSON.parse)].join(' | ');
    case 'list': return 'number[] | string[] | string';
    case 'text': return help.startsWith('JSON') ? 'object | string' : 'string';
    default: return 'string';
  }
}

function linesOf(option) {
  const { name, least, most, type } = option;
  const range = ['count', 'number'].includes(type) && typeof most === 'number' ? ` From ${least} to ${most}.` : '';
  const size = type === 'bytes' ? " Bytes: 262144, '300MB' (10^6) or '300MiB' (2^20)." : '';
  const comment = `${option.help}.${range}${size} Default: ${option.default}.`.replaceAll('*/', '* /');
  return [`  /** ${comment} */`, `  ${camel(name)}?: ${typeOf(option)};`];
}

async function makeTypes(folder) {
  const dist = resolve(folder || join(here, 'dist'));
  const options = await optionList(dist);
  const parts = [['load', 'LoadOptions'], ['session', 'SessionOptions'], ['reply', 'ReplyOptions']].map(([scope, name]) =>
    [`export interface ${name} {`, ...options.filter((option) => option.scope === scope).flatMap(linesOf), '}', ''].join('\n'));
  writeFileSync(join(dist, 'options.d.ts'), `// Made by make.mjs.\n${parts.join('\n')}`);
}

function makePage(to = join(here, '../build/page')) {
  rmSync(to, { recursive: true, force: true });
  mkdirSync(join(to, 'oriel/src'), { recursive: true });
  cpSync(join(here, 'page'), to, { recursive: true });
  for (const part of ['src/index.js', 'src/oriel.js', 'src/cached_model.js', 'src/sha256.js', 'dist/worker.js', 'dist/oriel.wasm', 'dist/oriel-threads.wasm']) cpSync(join(here, part), join(to, 'oriel', part));
  cpSync(join(here, '../models/oriel-tiny/oriel-tiny-q8_0.gguf'), join(to, 'model.gguf'));

  let bytes = 0;
  let packed = 0;
  for (const entry of readdirSync(to, { recursive: true })) {
    const file = join(to, entry);
    if (!statSync(file).isFile()) continue;
    const data = readFileSync(file);
    const small = gzipSync(data, { level: 9 }).length;
    bytes += data.length;
    packed += small;
    if (data.length > 50000) console.log(`${relative(to, file)}: ${data.length} bytes, gzip ${small}`);
  }
  console.log(`page: ${bytes} bytes, gzip ${packed}`);
  process.exitCode = bytes < 12e6 ? 0 : 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , what, folder] = process.argv;
  const make = { worker: makeWorker, types: makeTypes, page: makePage }[what];
  if (!make) throw new Error(`there is no ${what} to make: give worker, types or page`);
  await make(folder);
}
