// The chat page in a browser. ORIEL_URL: a server without a key; ORIEL_PICTURES: a folder for screenshots;
// CHROMIUM: the browser. Run by scripts/serve_clients.sh.
import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import {chromium} from 'playwright-core';

const url = process.env.ORIEL_PAGE_URL;
const pictures = process.env.ORIEL_PICTURES;
let browser;

before(async () => {
  browser = await chromium.launch({executablePath: process.env.CHROMIUM, args: ['--no-sandbox']});
});
after(() => browser?.close());

async function open(options) {
  const page = await browser.newPage(options);
  const wrong = [];
  page.on('pageerror', error => wrong.push(String(error)));
  page.on('console', message => message.type() === 'error' && wrong.push(message.text()));
  await page.goto(url);
  return {page, wrong};
}

async function say(page, text) {
  await page.fill('#text', text);
  await page.press('#text', 'Enter');
  await page.waitForFunction(() => document.getElementById('send').textContent === 'Send' &&
    document.querySelectorAll('#log .tools .note').length > 0);
}

for (const [name, options] of Object.entries({
  light: {viewport: {width: 1024, height: 720}, colorScheme: 'light'},
  dark: {viewport: {width: 1024, height: 720}, colorScheme: 'dark'},
  phone: {viewport: {width: 375, height: 667}, colorScheme: 'light'},
})) {
  test(`a chat, ${name}`, async () => {
    const {page, wrong} = await open(options);
    await page.waitForFunction(() => document.getElementById('model').textContent !== '');
    await say(page, 'Tell me about a fox. <b>Is it red?</b>');
    await say(page, 'Why?');
    const answers = await page.$$eval('.answer', all => all.map(one => one.textContent));
    assert.ok(answers.length === 2 && answers.every(text => text.length > 0), answers);
    assert.equal(await page.$('.user b'), null);
    assert.match(await page.locator('#log .note').last().textContent(), /context \d+\/[\d,]+/);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
    assert.ok(!wide, 'nothing is wider than the window');
    await page.screenshot({path: `${pictures}/page-${name}.png`});
    await page.click('#new');
    assert.equal(await page.$$eval('.turn', all => all.length), 0);
    assert.deepEqual(wrong, []);
    await page.close();
  });
}

test('stop, and a new chat', async () => {
  const {page} = await open({});
  await page.route('**/v1/chat/completions', route => {
    const body = {...JSON.parse(route.request().postData()), max_tokens: 100000,
      logit_bias: JSON.parse(process.env.ORIEL_NO_STOP)};
    return route.continue({postData: JSON.stringify(body)});
  });
  await page.fill('#text', 'Tell me a long story.');
  await page.press('#text', 'Enter');
  await page.waitForFunction(() => document.querySelector('.answer')?.textContent.length > 20);
  assert.equal(await page.textContent('#send'), 'Stop');
  await page.click('#send');
  await page.waitForFunction(() => document.getElementById('send').textContent === 'Send');
  assert.equal(await page.locator('#log .note').last().textContent(), 'stopped');
  const said = await page.locator('.answer').textContent();
  await new Promise(done => setTimeout(done, 300));
  assert.equal(await page.locator('.answer').textContent(), said);
  await page.fill('#text', 'Another one.');
  await page.press('#text', 'Enter');
  await page.waitForFunction(() => document.getElementById('send').textContent === 'Stop');
  await page.click('#new');  // while a reply runs
  await new Promise(done => setTimeout(done, 300));
  assert.equal(await page.$$eval('.turn', all => all.length), 0);
  await page.close();
});

// Replies that the test writes: the page gets them as from the server.
async function answer(page, replies) {
  const asked = [];
  await page.route('**/v1/chat/completions', async route => {
    asked.push(JSON.parse(route.request().postData()));
    const content = replies[Math.min(asked.length, replies.length) - 1];
    const event = choice => `data: ${JSON.stringify({choices: [{delta: {}, ...choice}]})}\n\n`;
    await route.fulfill({contentType: 'text/event-stream',
      body: event({delta: {content}}) + event({finish_reason: 'stop'}) + 'data: [DONE]\n\n'});
  });
  return asked;
}

const markdown = '## Title\n\nSome **bold** text, `code` and <b>no HTML</b>.\n\n```python\nprint("a")\n\n# b\n```\n' +
  '- one\n- two **bold**\n\n1. first\n';

for (const [name, options] of Object.entries({
  light: {viewport: {width: 1024, height: 720}, colorScheme: 'light'},
  dark: {viewport: {width: 1024, height: 720}, colorScheme: 'dark'},
  phone: {viewport: {width: 375, height: 667}, colorScheme: 'light'},
})) {
  test(`Markdown, copies, settings, ${name}`, async () => {
    const {page, wrong} = await open(options);
    await page.evaluate(() => Object.defineProperty(navigator, 'clipboard',
      {value: {writeText: async text => { globalThis.copied = text; }}}));
    const asked = await answer(page, [markdown, 'Another one.']);
    await say(page, 'Show me some code.');
    assert.equal(await page.textContent('.answer pre'), 'print("a")\n\n# b\n');
    assert.deepEqual(await page.$$eval('.answer b', all => all.map(one => one.textContent)), ['Title', 'bold', 'bold']);
    assert.equal(await page.textContent('.answer code'), 'code');
    assert.equal(await page.$$eval('.item', all => all.length), 3);
    await page.click('.box button');
    assert.equal(await page.evaluate(() => copied), 'print("a")\n\n# b\n');
    await page.click('.tools button');
    assert.equal(await page.evaluate(() => copied), markdown);
    await page.screenshot({path: `${pictures}/markdown-${name}.png`});
    await page.click('#set');
    await page.fill('[name=system]', 'Be brief.');
    await page.fill('[name=temperature]', '0.5');
    await page.fill('[name=max_tokens]', '20');
    await page.screenshot({path: `${pictures}/settings-${name}.png`});
    await page.click('#done');
    await page.click('.retry');
    await page.waitForFunction(() => document.querySelector('.answer')?.textContent === 'Another one.' &&
      document.querySelector('.retry'));
    assert.equal(asked.length, 2);
    assert.deepEqual(asked[1].messages, [{role: 'system', content: 'Be brief.'},
      {role: 'user', content: 'Show me some code.'}]);
    assert.deepEqual([asked[1].temperature, asked[1].max_tokens, asked[1].top_p], [0.5, 20, undefined]);
    await page.press('#text', 'ArrowUp');
    assert.equal(await page.inputValue('#text'), 'Show me some code.');
    assert.deepEqual(wrong, []);
    await page.close();
  });
}

test('chats are kept in the browser', async () => {
  const {page, wrong} = await open({});
  await answer(page, ['First.', 'Second.', 'Third.']);
  const titles = () => page.$$eval('#list button:first-child', all => all.map(one => one.textContent));
  await say(page, 'one');
  await page.click('#new');
  await say(page, 'two');
  assert.deepEqual(await titles(), ['two', 'one']);
  await page.reload();
  assert.equal(await page.textContent('.answer'), 'Second.');
  await page.click('text=one');
  assert.equal(await page.textContent('.answer'), 'First.');
  await say(page, 'more');
  assert.deepEqual(await page.$$eval('.answer', all => all.map(one => one.textContent)), ['First.', 'Third.']);
  await page.click('[aria-label="Delete two"]');
  assert.deepEqual(await titles(), ['one']);
  await page.reload();
  assert.deepEqual(await titles(), ['one']);
  assert.deepEqual(wrong, []);
  await page.close();
});

test('a message is not lost when the server is gone', async () => {
  const {page} = await open({});
  await page.route('**/v1/chat/completions', route => route.abort());
  await page.fill('#text', 'Are you there?');
  await page.press('#text', 'Enter');
  await page.waitForSelector('.error');
  assert.match(await page.textContent('.error'), /server does not answer/);
  assert.equal(await page.inputValue('#text'), 'Are you there?');
  assert.equal(await page.$('.user'), null);
  await page.close();
});
