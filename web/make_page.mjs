// Puts the page together: `node make_page.mjs [FOLDER]`, by default build/page. Says what it weighs, and ends with 1 where
// that is more than 12 MB.
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const here = fileURLToPath(new URL('./', import.meta.url));
const to = process.argv[2] || join(here, '../build/page');
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
