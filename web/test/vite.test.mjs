// The packed package in a project of vite, built and from the dev server, and of esbuild.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { serve } from '../serve.mjs';
import { model, noModule } from './native.mjs';

const root = fileURLToPath(new URL('../../', import.meta.url));
const folder = join(root, 'build/web/vite');
const chromium = process.env.ORIEL_CHROMIUM || '/usr/bin/chromium';
const patience = 120_000;
let playwright;
try {
  playwright = createRequire(join(root, 'build/web/'))('playwright-core');
} catch {
  // said below
}
const noBrowser = !playwright ? 'playwright-core is not in build/web: scripts/web.sh installs it'
  : existsSync(chromium) ? false : `${chromium} is not there: scripts/web.sh installs it`;
const flags = ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];

function run(program, args, where = folder) {
  return spawnSync(program, args, { cwd: where, encoding: 'utf8', timeout: 300_000 });
}

/** A copy of the example with vite and the package; else a reason. */
function makeProject() {
  rmSync(folder, { recursive: true, force: true });
  cpSync(join(root, 'web/examples/vite'), folder, { recursive: true });
  mkdirSync(join(folder, 'public'));
  cpSync(model, join(folder, 'public/model.gguf'));
  const fetched = run('npm', ['ci', '--no-audit', '--no-fund', '--prefer-offline', '--fetch-retries=1']);
  if (fetched.error) return `npm cannot be run: ${fetched.error.message}`;
  const offline = /\b(E(NOTFOUND|AI_AGAIN|CONNREFUSED|CONNRESET|TIMEDOUT|NETUNREACH|HOSTUNREACH)|ERR_SOCKET_TIMEOUT)\b/.exec(fetched.stderr);
  if (offline) return `npm has no network: ${offline[0]}`;
  assert.equal(fetched.status, 0, fetched.stderr);
  const packed = run('npm', ['pack', '--silent', '--pack-destination', folder], join(root, 'web'));
  assert.equal(packed.status, 0, packed.stderr);
  mkdirSync(join(folder, 'node_modules/oriel'));
  const unpacked = run('tar', ['-xzf', packed.stdout.trim(), '--strip-components=1', '-C', 'node_modules/oriel']);
  assert.equal(unpacked.status, 0, unpacked.stderr);
  return false;
}

/** Asks one question in the page at `url`; returns the page's text when it was ready, and the reply. */
async function chat(url) {
  const browser = await playwright.chromium.launch({ executablePath: chromium, args: flags });
  try {
    const tab = await browser.newPage();
    tab.setDefaultTimeout(patience);
    const errors = [];
    tab.on('pageerror', (error) => errors.push(error.message));
    await tab.goto(url);
    const status = () => tab.textContent('#status');
    await tab.waitForFunction(() => document.querySelector('#status').textContent !== 'Loading');
    const ready = await status();
    assert.match(ready, /^Ready/);
    await tab.click('button');
    await tab.waitForFunction(() => document.querySelector('#status').textContent === 'Done');
    assert.deepEqual(errors, []);
    return { ready, reply: await tab.textContent('#reply'), processors: await tab.evaluate('navigator.hardwareConcurrency') };
  } finally {
    await browser.close();
  }
}

describe('vite', { skip: noModule, timeout: 4 * patience }, () => {
  let missing;
  before(() => {
    missing = makeProject();
  });

  test('a_project_is_built_and_replies_within_two_minutes', async (t) => {
    if (missing) return t.skip(missing);
    const begin = performance.now();  // after the downloads
    const made = run('npx', ['vite', 'build']);
    assert.equal(made.status, 0, made.stderr);
    const files = readdirSync(join(folder, 'dist/assets')).map((name) => name.replace(/-[\w-]{8}\./, '.')).sort();
    assert.deepEqual(files.filter((name) => /worker|wasm/.test(name)), ['oriel-threads.wasm', 'oriel.wasm', 'worker.js']);
    if (noBrowser) return t.skip(noBrowser);
    const site = await serve({ root: join(folder, 'dist') });
    try {
      assert.ok((await chat(site.url)).reply.length > 5);
    } finally {
      site.server.close();
      site.server.closeAllConnections();
    }
    const seconds = (performance.now() - begin) / 1000;
    t.diagnostic(`first reply: vite ${seconds.toFixed(1)} s`);
    assert.ok(seconds < 120, `${seconds} s`);
    return undefined;
  });

  for (const isolation of [true, false]) {
    test(`the_built_site_chats_${isolation ? 'with' : 'without'}_shared_memory`, async (t) => {
      if (missing || noBrowser) return t.skip(missing || noBrowser);
      const site = await serve({ root: join(folder, 'dist'), isolation });
      try {
        const { ready, reply, processors } = await chat(site.url);
        assert.equal(ready, `Ready, ${isolation ? Math.min(processors, 8) : 1} threads`);
        assert.ok(reply.length > 5, reply);
      } finally {
        site.server.close();
        site.server.closeAllConnections();
      }
      return undefined;
    });
  }

  test('esbuild_builds_it_as_docs_web_says', async (t) => {
    if (missing || noBrowser) return t.skip(missing || noBrowser);
    const site = join(folder, 'esbuild');
    mkdirSync(site);
    const main = readFileSync(join(folder, 'main.js'), 'utf8').replace("memory: '40MB'", "memory: '40MB', worker: '/oriel/worker.js', assets: '/oriel/'");
    writeFileSync(join(folder, 'esbuild.js'), main);
    const made = run('npx', ['esbuild', 'esbuild.js', '--bundle', '--format=esm', `--outfile=${site}/main.js`]);
    assert.equal(made.status, 0, made.stderr);
    cpSync(join(folder, 'node_modules/oriel/dist'), join(site, 'oriel'), { recursive: true });
    for (const [from, to] of [['index.html', 'index.html'], ['public/model.gguf', 'model.gguf']]) cpSync(join(folder, from), join(site, to));
    const server = await serve({ root: site });
    try {
      assert.ok((await chat(server.url)).reply.length > 5);
    } finally {
      server.server.close();
      server.server.closeAllConnections();
    }
    return undefined;
  });

  describe('the dev server', () => {
    let server;
    after(() => server && server.kill());

    test('it_serves_the_project', async (t) => {
      if (missing || noBrowser) return t.skip(missing || noBrowser);
      server = spawn(process.execPath, ['node_modules/vite/bin/vite.js', '--host', '127.0.0.1', '--port', '0'], { cwd: folder, env: { ...process.env, NO_COLOR: '1' } });
      const url = await new Promise((resolve, reject) => {
        let said = '';
        const hear = (text) => {
          said += text;
          const found = /http:\/\/127\.0\.0\.1:\d+\//.exec(said);
          if (found) resolve(found[0]);
        };
        server.stdout.on('data', hear);
        server.stderr.on('data', hear);
        server.on('exit', (code) => reject(new Error(`vite ended with code ${code}: ${said}`)));
      });
      const { ready, reply, processors } = await chat(url);
      assert.equal(ready, `Ready, ${Math.min(processors, 8)} threads`);
      assert.ok(reply.length > 5, reply);
      return undefined;
    });
  });
});
