// The page: one model, one conversation, a slider.
import { Oriel } from './oriel/src/index.js';

const at = (id) => document.getElementById(id);
const input = at('input');
const system = 'You are a helpful assistant.';
let source;       // the model file, as a Blob
let name = '';
let planner;
let model;
let chat;
let least = 0;    // of the slider, bytes
let most = 0;
let wanted;       // the latest plan
let running;      // of a reply: its AbortController
let messages = [];

const say = (text) => (at('status').textContent = text);
const mb = (bytes) => `${(bytes / 1e6).toFixed(bytes < 1e8 ? 1 : 0)} MB`;

// ---- Memory ----

/** Even steps feel too coarse at the small end, where tokens are dear. */
const bytesAt = (value) => Math.round(least * (most / least) ** (value / 1000));
const valueAt = (bytes) => Math.round((1000 * Math.log(bytes / least)) / Math.log(most / least));

const formats = ({ kFormat, vFormat }) => (kFormat === 'f16' ? kFormat : `k${kFormat.slice(3)}v${vFormat.slice(3)}`);

function showPlan(plan) {
  const body = at('choices').tBodies[0];
  body.replaceChildren(...plan.choices.map((choice) => {
    const row = document.createElement('tr');
    row.className = choice.chosen && plan.fits ? 'chosen' : choice.fits ? '' : 'out';
    const cells = [formats(choice), choice.fits ? `${choice.windowTokens}` : 'no room', choice.fits ? choice.lossNats.toFixed(4) : ''];
    for (const cell of cells) row.insertCell().textContent = cell;
    return row;
  }));
  at('plan-note').textContent = plan.fits
    ? `${formats(plan)}: the last ${plan.windowTokens} tokens and the first ${plan.sinkTokens}; ${mb(plan.totalBytes)}, of which ${mb(plan.weightsBytes)} are weights. Loss is in nats a token.`
    : `Does not fit: at least ${mb(plan.minimumBytes)}.`;
  at('apply').disabled = !plan.fits || !!running || (model && model.plan.memoryBytes === plan.memoryBytes);
}

let planning = false;
async function replan() {
  at('memory-label').textContent = mb(bytesAt(at('memory').value));
  if (planning) return;
  planning = true;
  let memory;
  do {
    memory = bytesAt(at('memory').value);
    wanted = await planner.plan({ memory, transcript: 16384 });
  } while (memory !== bytesAt(at('memory').value));
  planning = false;
  showPlan(wanted);
}

async function useSource(blob, called) {
  source = blob;
  name = called;
  if (planner) planner.dispose();
  planner = await Oriel.planner(source);
  const smallest = await planner.plan({ memory: 1, transcript: 16384 });
  least = smallest.minimumBytes;
  most = Math.min(least * 1.4, 4e9);
  at('memory').disabled = false;
  at('memory').value = valueAt(least * 1.08);
  await replan();
  await load();
}

async function load() {
  const plan = wanted;
  const kept = chat ? await chat.save().catch(() => null) : null;
  ready(false);
  if (model) await model.dispose();
  model = chat = undefined;
  say('Loading');
  model = await Oriel.load(source, {
    memory: plan.memoryBytes, transcript: 16384,
    progress: ({ what, done, total }) => say(`${what === 'load' ? 'Loading' : 'Fetching'} ${total ? Math.round((100 * done) / total) + ' %' : mb(done)}`),
  });
  chat = model.session({ system });
  if (kept && kept.length) {
    const restored = await chat.restore(kept).catch(() => null);
    if (!restored) clearMessages();
  }
  showPlan(plan);
  ready(true);
  await tell();
}

function ready(is) {
  for (const id of ['send', 'save', 'restore', 'new']) at(id).disabled = !is;
  if (is) input.focus();
}

async function tell() {
  const stats = await chat.stats();
  const isolated = crossOriginIsolated ? '' : ' (no headers for more)';
  say(`${name} · ${model.threads} thread${model.threads > 1 ? 's' : isolated} · ${mb(stats.wasmBytes)} in use`);
  await draw();
}

// ---- The cache ----

async function draw() {
  const view = await chat.describe();
  const canvas = at('cache');
  const ratio = devicePixelRatio || 1;
  canvas.width = canvas.clientWidth * ratio;
  canvas.height = canvas.clientHeight * ratio;
  const paint = canvas.getContext('2d');
  const style = getComputedStyle(document.documentElement);
  const colour = (id) => style.getPropertyValue(id);
  const window = model.plan.windowTokens;
  const first = Math.max(view.sinksUsed, view.position - window);
  const room = model.plan.sinkTokens + window;
  const width = (tokens) => (tokens / room) * canvas.width;
  const block = (from, tokens, fill, top, height) => {
    paint.fillStyle = fill;
    paint.fillRect(width(from), top * canvas.height, Math.max(width(tokens), tokens > 0 ? 1 : 0), height * canvas.height);
  };
  block(0, view.sinksUsed, colour('--sink'), 0, 1);
  block(view.sinksUsed, view.position - first, colour('--held'), 0, 1);
  const seen = Math.max(view.firstVisible, first);
  block(view.sinksUsed + seen - first, view.position - seen, colour('--seen'), 0, 1);
  for (const turn of view.turns) {
    if (turn >= first) block(view.sinksUsed + turn - first, ratio / canvas.width, colour('--back'), 0, 1);
  }
  const seenTokens = view.sinksUsed + Math.max(view.position - seen, 0);
  at('cache-note').textContent = `${view.position} tokens so far, ${seenTokens} of ${room} seen` +
    (view.position - seenTokens > 0 ? `, ${view.position - seenTokens} forgotten` : '');
  return seenTokens;
}

// ---- Chat ----

function show(role, text) {
  const item = document.createElement('li');
  item.className = role;
  item.textContent = text;
  at('messages').append(item);
  at('hint').hidden = true;
  item.scrollIntoView({ block: 'end' });
  return item;
}
function clearMessages() {
  messages = [];
  at('messages').replaceChildren();
  at('hint').hidden = false;
}
function showAll(list) {
  clearMessages();
  for (const message of list) {
    if (message.role === 'system' || !message.content) continue;
    messages.push({ role: message.role, content: message.content });
    show(message.role, message.content);
  }
}

async function send(text) {
  messages.push({ role: 'user', content: text });
  show('user', text);
  const item = show('assistant', '');
  running = new AbortController();
  at('send').hidden = true;
  at('stop').hidden = false;
  ready(false);
  at('apply').disabled = true;
  let answer = '';
  try {
    const reply = chat.reply(text, { signal: running.signal });
    let pieces = 0;
    for await (const piece of reply) {
      answer += piece;
      item.textContent = answer;
      item.scrollIntoView({ block: 'end' });
      ++pieces;
    }
    const result = await reply.result;
    const speed = document.createElement('span');
    speed.className = 'speed';
    speed.textContent = `${result.tokens} tokens, ${Math.round(result.decodeTokensPerS)}/s, first after ${Math.round(result.timeToFirstTokenMs)} ms`;
    item.append(speed);
  } catch (error) {
    if (error.name !== 'AbortError') show('error', error.message);
  } finally {
    messages.push({ role: 'assistant', content: answer });
    running = undefined;
    at('send').hidden = false;
    at('stop').hidden = true;
    ready(true);
    showPlan(wanted);
    await tell().catch((error) => say(error.message));
  }
}

at('compose').addEventListener('submit', (event) => {
  event.preventDefault();
  const text = input.value.trim();
  if (!text || !chat || running) return;
  input.value = '';
  input.style.height = '';
  send(text);
});
input.addEventListener('keydown', (event) => {
  if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    at('compose').requestSubmit();
  }
});
input.addEventListener('input', () => {
  input.style.height = '';
  input.style.height = `${input.scrollHeight + 2}px`;
});
at('stop').addEventListener('click', () => running && running.abort());
at('memory').addEventListener('input', () => replan().catch(failed));
at('apply').addEventListener('click', () => {
  at('settings').classList.remove('open');
  load().catch(failed);
});
at('settings-toggle').addEventListener('click', () => {
  const open = at('settings').classList.toggle('open');
  at('settings-toggle').setAttribute('aria-expanded', open);
  if (open && chat && !running) draw();
});
at('new').addEventListener('click', async () => {
  await chat.reset();
  clearMessages();
  await tell();
});

// ---- What stays in the browser ----

function store(mode, body) {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open('oriel', 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore('chats');
    opening.onerror = () => reject(opening.error);
    opening.onsuccess = () => {
      const transaction = opening.result.transaction('chats', mode);
      const request = body(transaction.objectStore('chats'));
      transaction.oncomplete = () => resolve(request.result);
      transaction.onerror = () => reject(transaction.error);
    };
  });
}
at('save').addEventListener('click', async () => {
  const snapshot = await chat.save();
  await store('readwrite', (chats) => chats.put({ snapshot, messages, saved: Date.now() }, 'latest'));
  say(`Saved in this browser: ${mb(snapshot.length)}`);
});
at('restore').addEventListener('click', async () => {
  try {
    const kept = await store('readonly', (chats) => chats.get('latest'));
    if (!kept) return say('Nothing was saved yet');
    const restored = await chat.restore(kept.snapshot);
    showAll(kept.messages);
    await draw();
    return say(restored.tokensDropped ? `Restored without the oldest ${restored.tokensDropped} tokens` : 'Restored');
  } catch (error) {
    return say(error.message);
  }
});
at('file').addEventListener('change', () => {
  const [file] = at('file').files;
  if (!file) return;
  clearMessages();
  chat = undefined;
  useSource(file, file.name).catch(failed);
});

function failed(error) {
  planning = false;
  say(error.message);
}

/** Everything that the page is made of, for the service worker. */
const files = ['./', 'page.css', 'page.js', 'model.gguf',
  ...['src/index.js', 'src/oriel.js', 'dist/worker.js', 'dist/oriel.wasm', 'dist/oriel-threads.wasm'].map((part) => `oriel/${part}`)];

async function begin() {
  if ('serviceWorker' in navigator) {
    await navigator.serviceWorker.register('sw.js').catch(() => {});
    navigator.serviceWorker.ready.then(({ active }) => active.postMessage(files)).catch(() => {});
  }
  say('Fetching the model');
  const answer = await fetch('model.gguf');
  if (!answer.ok) throw new Error(`model.gguf answered ${answer.status}: serve it beside the page`);
  await useSource(await answer.blob(), 'oriel-tiny');
}
begin().catch(failed);
