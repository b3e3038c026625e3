// The page in a real browser without a window, as docs/web.md serves it: with and without the headers that allow threads.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { serve } from '../serve.mjs';
import { model as file, native, noNative } from './native.mjs';

const root = fileURLToPath(new URL('../../', import.meta.url));
const page = join(root, 'build/page');
const shots = join(root, 'build/web/screenshots');
const chromium = process.env.ORIEL_CHROMIUM || '/usr/bin/chromium';
let playwright;
try {
  playwright = createRequire(join(root, 'build/web/'))('playwright-core');
} catch {
  // said below
}
const missing = !playwright ? 'playwright-core is not in build/web: scripts/web.sh installs it'
  : !existsSync(chromium) ? `${chromium} is not there: scripts/web.sh installs it`
    : !existsSync(join(page, 'model.gguf')) ? 'build/page is not there: node web/make.mjs page' : false;
const patience = 90_000;

for (const isolation of [true, false]) {
  describe(isolation ? 'isolated, with threads' : 'not isolated, one thread', { skip: missing }, () => {
    let browser;
    let tab;
    let site;
    const errors = [];

    before(async () => {
      mkdirSync(shots, { recursive: true });
      site = await serve({ root: page, isolation });
      browser = await playwright.chromium.launch({ executablePath: chromium, args: ['--no-sandbox'] });
      tab = await (await browser.newContext({ viewport: { width: 1100, height: 720 } })).newPage();
      tab.setDefaultTimeout(patience);
      tab.on('pageerror', (error) => errors.push(error.message));
      await tab.goto(site.url);
      await tab.waitForSelector('#send:not([disabled])');
    });
    after(async () => {
      if (browser) await browser.close();
      if (site) {
        site.server.close();
        site.server.closeAllConnections();
      }
    });
    const shot = (name) => tab.screenshot({ path: join(shots, `${isolation ? 'threads' : 'single'}-${name}.png`) });
    const answered = async (count) => {
      await tab.waitForFunction((n) => document.querySelectorAll('.speed').length >= n, count);
    };

    test('headers_decide_about_threads', async () => {
      assert.equal(await tab.evaluate('crossOriginIsolated'), isolation);
      assert.match(await tab.textContent('#status'), isolation ? /\d+ thread/ : /1 thread \(no headers/);
    });

    test('greedy_tokens_are_the_native_ones', { skip: noNative }, async () => {
      const ids = await tab.evaluate(async () => {
        const { Oriel } = await import('./oriel/src/index.js');
        const model = await Oriel.load('model.gguf', { memory: '40MB', window: 300, kv: 'k8v4' });
        const { tokenIds } = await model.session().reply('Hello!', { greedy: true, maxTokens: 60 }).result;
        await model.dispose();
        return tokenIds;
      });
      const reference = native(['run', file, '--memory', '40MB', '--window', '300', '--kv', 'k8v4', '--greedy', '--tokens', '60', '--prompt', 'Hello!']);
      assert.deepEqual(ids, reference.token_ids);
    });

    test('a_cached_model_is_fetched_once', async () => {
      const fetched = [];
      tab.on('request', (request) => request.url().endsWith('model.gguf') && fetched.push(request.method()));
      const bytes = await tab.evaluate(async () => {
        const { Oriel } = await import('./oriel/src/index.js');
        const { cachedModel, forgetModel } = await import('./oriel/src/cached_model.js');
        await forgetModel('model.gguf');
        await cachedModel('model.gguf');
        const file = await cachedModel('model.gguf');
        const model = await Oriel.load(file, { memory: '40MB', window: 300 });
        await model.dispose();
        await forgetModel('model.gguf');
        return file.size;
      });
      assert.ok(bytes > 1e6);
      assert.ok(fetched.length <= 1, 'the page\'s own service worker may have answered');
    });

    test('a_chat_streams_and_the_tab_stays_responsive', async () => {
      await tab.fill('#input', 'Hello! Who are you?');
      await tab.evaluate(() => {
        window.beats = 0;
        setInterval(() => ++window.beats, 10);
      });
      await tab.click('#send');
      await answered(1);
      assert.ok((await tab.textContent('#messages .assistant')).length > 10);
      assert.ok((await tab.evaluate('window.beats')) > 3);
      assert.match(await tab.textContent('#cache-note'), /tokens so far/);
      await shot('light');
    });

    test('a_reply_is_stopped', async () => {
      const position = await tab.evaluate(async () => {
        const { Oriel } = await import('./oriel/src/index.js');
        const model = await Oriel.load('model.gguf', { memory: '40MB', window: 300 });
        const chat = model.session();
        const stop = new AbortController();
        let name = '';
        try {
          for await (const piece of chat.reply('Hello!', { signal: stop.signal, ignoreStop: true, maxTokens: 20000 })) {
            if (piece) stop.abort();
          }
        } catch (error) {
          name = error.name;
        }
        const stats = await chat.stats();
        await model.dispose();
        return name === 'AbortError' ? stats.position : -1;
      });
      assert.ok(position > 0 && position < 5000, `${position}`);
    });

    test('the_slider_plans_live_and_applying_keeps_the_chat', async () => {
      const before = await tab.textContent('#choices .chosen td:nth-child(2)');
      await tab.fill('#memory', '900');
      await tab.waitForFunction((old) => document.querySelector('#choices .chosen td:nth-child(2)').textContent !== old, before);
      await tab.click('#apply');
      await tab.waitForSelector('#send:not([disabled])');
      assert.doesNotMatch(await tab.textContent('#cache-note'), /^0 tokens/);
    });

    test('a_chat_is_saved_and_restored', async () => {
      await tab.click('#save');
      await tab.waitForFunction(() => /Saved/.test(document.querySelector('#status').textContent));
      await tab.click('#new');
      await tab.waitForFunction(() => document.querySelectorAll('#messages li').length === 0);
      await tab.click('#restore');
      await tab.waitForFunction(() => /Restored/.test(document.querySelector('#status').textContent));
      assert.ok((await tab.$$('#messages li')).length >= 2);
    });

    test('it_works_offline_dark_and_narrow', async () => {
      await tab.waitForFunction(async () => {
        const kept = await caches.open('oriel-1');
        return !!(await kept.match('model.gguf')) && !!(await kept.match('oriel/dist/oriel-threads.wasm'));
      });
      site.server.close();
      site.server.closeAllConnections();
      await tab.emulateMedia({ colorScheme: 'dark' });
      await tab.setViewportSize({ width: 375, height: 667 });
      await tab.reload();
      await tab.waitForSelector('#send:not([disabled])');
      await tab.fill('#input', 'What is the capital of France?');
      await tab.press('#input', 'Enter');
      await answered(1);
      assert.equal(await tab.evaluate('crossOriginIsolated'), isolation);
      assert.ok(await tab.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
      await shot('dark-375');
      await tab.click('#settings-toggle');
      await shot('dark-375-memory');
    });

    test('nothing_failed_in_the_page', () => assert.deepEqual(errors, []));
  });
}
