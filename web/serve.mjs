// A static server for the page: `node serve.mjs [--port N] [--no-isolation] [--root FOLDER]`. All it does beyond files is
// to send the two headers that give a page shared memory, and with it threads.
import { createReadStream, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const kinds = {
  '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.mjs': 'text/javascript', '.css': 'text/css',
  '.wasm': 'application/wasm', '.json': 'application/json', '.webmanifest': 'application/manifest+json', '.svg': 'image/svg+xml',
};

export function serve({ root, port = 0, isolation = true, host = '127.0.0.1' }) {
  const server = createServer((request, response) => {
    let path;
    try {
      path = decodeURIComponent(new URL(request.url, 'http://host').pathname);
    } catch {
      response.writeHead(400).end();
      return;
    }
    if (path.endsWith('/')) path += 'index.html';
    const file = resolve(join(root, path));
    let info;
    try {
      if (!file.startsWith(resolve(root) + sep)) throw new Error();
      info = statSync(file);
      if (!info.isFile()) throw new Error();
    } catch {
      response.writeHead(404, { 'content-type': 'text/plain' }).end('not here\n');
      return;
    }
    response.writeHead(200, {
      'content-type': kinds[extname(file)] || 'application/octet-stream',
      'content-length': info.size,
      'cache-control': 'no-cache',
      ...(isolation ? { 'cross-origin-opener-policy': 'same-origin', 'cross-origin-embedder-policy': 'require-corp' } : {}),
    });
    if (request.method === 'HEAD') response.end();
    else createReadStream(file).on('error', () => response.destroy()).pipe(response);
  });
  return new Promise((resolve, reject) => {
    server.on('error', reject);
    server.listen(port, host, () => resolve({ server, url: `http://${host}:${server.address().port}/` }));
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const value = (name, fallback) => {
    const at = process.argv.indexOf(name);
    return at < 0 ? fallback : process.argv[at + 1];
  };
  const { url } = await serve({
    root: value('--root', fileURLToPath(new URL('../build/page', import.meta.url))),
    port: Number(value('--port', 8080)),
    isolation: !process.argv.includes('--no-isolation'),
  });
  console.log(url);
}
