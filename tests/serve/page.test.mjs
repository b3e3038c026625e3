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
    document.querySelectorAll('.note').length > 0);
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
    const answers = await page.$$eval('.turn:not(.user):not(.note):not(.thought)', all => all.map(one => one.textContent));
    assert.ok(answers.length === 2 && answers.every(text => text.length > 0), answers);
    assert.equal(await page.$('.user b'), null);
    assert.match(await page.locator('.note').last().textContent(), /window \d+\/\d+/);
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
  await page.waitForFunction(() => document.querySelector('.turn:not(.user):not(.thought)')?.textContent.length > 20);
  assert.equal(await page.textContent('#send'), 'Stop');
  await page.click('#send');
  await page.waitForFunction(() => document.getElementById('send').textContent === 'Send');
  assert.equal(await page.locator('.note').last().textContent(), 'stopped');
  const said = await page.locator('.turn:not(.user):not(.thought):not(.note)').textContent();
  await new Promise(done => setTimeout(done, 300));
  assert.equal(await page.locator('.turn:not(.user):not(.thought):not(.note)').textContent(), said);
  await page.fill('#text', 'Another one.');
  await page.press('#text', 'Enter');
  await page.waitForFunction(() => document.getElementById('send').textContent === 'Stop');
  await page.click('#new');  // while a reply runs
  await new Promise(done => setTimeout(done, 300));
  assert.equal(await page.textContent('#log'), '');
  await page.close();
});
