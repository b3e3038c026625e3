#include "serve/protocols.h"

namespace cli {
namespace {

constexpr char kPage[] = R"page(<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Oriel</title>
<style>
:root { --back: #fff; --text: #1a1d21; --quiet: #667079; --line: #d9dee3; --mine: #e8f0fa; --accent: #1f5fb0; }
@media (prefers-color-scheme: dark) {
  :root { --back: #16191d; --text: #e6e9ec; --quiet: #98a2ab; --line: #333a41; --mine: #22303f; --accent: #7db1ee; }
}
* { box-sizing: border-box; }
html, body { height: 100%; margin: 0; }
body { display: grid; grid-template: auto 1fr auto / 15rem minmax(0, 1fr); font: 16px/1.5 system-ui, sans-serif;
  background: var(--back); color: var(--text); }
header { grid-column: 1 / 3; display: flex; align-items: center; gap: .5rem; padding: .75rem 1rem;
  border-bottom: 1px solid var(--line); }
h1 { font-size: 1rem; margin: 0; flex: 1; min-width: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
h1 span { color: var(--quiet); font-weight: normal; }
nav { grid-area: 2 / 1 / 4 / 2; overflow-y: auto; padding: .5rem; border-right: 1px solid var(--line); }
nav div { display: flex; border-radius: .5rem; }
nav div.here { background: var(--mine); }
nav button { border: 0; padding: .375rem .5rem; }
nav button:first-child { flex: 1; min-width: 0; text-align: left; overflow: hidden; text-overflow: ellipsis;
  white-space: nowrap; }
main { grid-area: 2 / 2; overflow-y: auto; }
main > *, form { width: 100%; max-width: 46rem; margin: 0 auto; padding: 0 1rem; }
main > :first-child { padding-top: 1rem; }
.turn { margin: 0 auto 1rem; white-space: pre-wrap; overflow-wrap: anywhere; }
.user span { display: block; background: var(--mine); border-radius: .75rem; padding: .5rem .75rem; width: fit-content;
  margin-inline-start: auto; max-width: 85%; }
.thought { color: var(--quiet); font-size: .875rem; margin-bottom: .5rem; }
.thought:empty, .answer:empty { display: none; }
.answer { margin-bottom: .25rem; }
.item { padding-left: 1.25em; text-indent: -1em; }
.answer code, pre { font: .875em/1.5 ui-monospace, monospace; background: var(--mine); border-radius: .25rem; }
.answer code { padding: .0625rem .25rem; }
.box { position: relative; margin: .5rem 0; }
pre { margin: 0; padding: .75rem; overflow-x: auto; border-radius: .5rem; white-space: pre; overflow-wrap: normal; }
.box button { position: absolute; top: .25rem; right: .25rem; background: var(--back); }
.tools { display: flex; gap: .5rem; align-items: baseline; flex-wrap: wrap; margin-bottom: 1.25rem; }
.tools button, .box button { font-size: .8125rem; padding: .125rem .5rem; color: var(--quiet); }
.note { color: var(--quiet); font-size: .8125rem; }
.error { color: #b3261e; }
@media (prefers-color-scheme: dark) { .error { color: #f2a09a; } }
form { grid-area: 3 / 2; display: flex; gap: .5rem; align-items: flex-end; padding: .75rem 1rem; }
textarea, input { flex: 1; min-width: 0; resize: none; font: inherit; color: inherit; background: var(--back);
  border: 1px solid var(--line); border-radius: .5rem; padding: .5rem .75rem; max-height: 40vh; }
button { font: inherit; color: inherit; background: none; border: 1px solid var(--line); border-radius: .5rem;
  padding: .375rem .75rem; cursor: pointer; }
#send { background: var(--accent); border-color: var(--accent); color: var(--back); min-width: 4.5rem; padding: .5rem; }
:is(button, textarea, input):focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
dialog { color: inherit; background: var(--back); border: 1px solid var(--line); border-radius: .75rem;
  width: min(30rem, 92vw); }
dialog label { display: flex; gap: .75rem; align-items: center; margin-bottom: .75rem; }
dialog label span { width: 7.5rem; }
#chats { display: none; }
@media (max-width: 48rem) {
  body { grid-template-columns: 0 minmax(0, 1fr); }
  #chats { display: inline; }
  nav { display: none; }
  .listed { grid-template-columns: 100% 0; }
  .listed nav { display: block; }
}
</style>
<header><button id="chats" type="button">Chats</button><h1>Oriel <span id="model"></span></h1>
<button id="set" type="button">Settings</button><button id="new" type="button">New chat</button></header>
<nav id="list" aria-label="Chats"></nav>
<main id="log" aria-live="polite"></main>
<form id="form"><textarea id="text" rows="1" placeholder="Message" aria-label="Message" autofocus></textarea>
<button id="send">Send</button></form>
<dialog id="settings"><label><span>System prompt</span><textarea name="system" rows="3"></textarea></label>
<label><span>Temperature</span><input name="temperature" type="number" min="0" max="5" step="any"></label>
<label><span>Top p</span><input name="top_p" type="number" min="0" max="1" step="any"></label>
<label><span>Max tokens</span><input name="max_tokens" type="number" min="1"></label>
<label><span>Seed</span><input name="seed" type="number" min="0"></label>
<p class="note">The system prompt is for this chat and new ones. Empty fields are left to the server.</p>
<button id="done" type="button">Done</button></dialog>
<script>
'use strict';
const find = id => document.getElementById(id);
const log = find('log'), text = find('text'), send = find('send'), dialog = find('settings');
const kept = 'oriel.chat.';
let key = sessionStorage.getItem('key') || '';
let running = null;
const settings = {system: '', ...load('oriel.settings')};
let chat = load(kept + sessionStorage.getItem('chat')) || fresh();

function load(name) {
  try { return JSON.parse(localStorage.getItem(name)); } catch { return null; }
}

function store(name, value) {
  try {
    localStorage.setItem(name, JSON.stringify(value));
  } catch {
    add('turn note error', 'This browser has no room for more: delete some chats to keep this one.');
  }
}

function fresh() { return {id: String(Date.now()), system: settings.system, messages: []}; }

function save() {
  if (chat.messages.length) store(kept + chat.id, chat);
  sessionStorage.setItem('chat', chat.id);
}

function titleOf(one) { return one.messages[0]?.content.slice(0, 60) || 'New chat'; }

async function ask(path, options = {}) {
  for (;;) {
    const headers = {'Content-Type': 'application/json'};
    if (key) headers.Authorization = 'Bearer ' + key;
    const answer = await fetch(path, {...options, headers});
    if (answer.status !== 401) return answer;
    key = prompt('This server asks for an API key') || '';
    if (!key) return answer;
    sessionStorage.setItem('key', key);
  }
}

function make(tag, kind, content = '') {
  const node = document.createElement(tag);
  node.className = kind;
  node.textContent = content;
  return node;
}

// Keeps the end of the log in view while it changes.
function atEnd(change) {
  const at_end = log.scrollHeight - log.scrollTop - log.clientHeight < 80;
  const result = change();
  if (at_end) log.scrollTop = log.scrollHeight;
  return result;
}

function add(kind, content = '') {
  return atEnd(() => log.appendChild(make('div', kind, content)));
}

function button(label, action) {
  const node = make('button', '', label);
  node.type = 'button';
  node.onclick = () => action(node);
  return node;
}

// Browsers offer the clipboard only to https:// and to this machine.
function copyButton(content) {
  return button('Copy', async node => {
    try {
      await navigator.clipboard.writeText(content());
      node.textContent = 'Copied';
    } catch {
      node.textContent = 'Not allowed';
    }
    setTimeout(() => { node.textContent = 'Copy'; }, 1500);
  });
}

function inline(line, node) {
  let at = 0;
  for (const found of line.matchAll(/(`+)([^`](?:.*?[^`])?)\1(?!`)|\*\*(\S(?:.*?\S)?)\*\*/g)) {
    node.append(line.slice(at, found.index), make(found[1] ? 'code' : 'b', '', found[2] ?? found[3]));
    at = found.index + found[0].length;
  }
  node.append(line.slice(at));
  return node;
}

// Renders code, headings, lists and bold text. Everything else, including HTML, stays text.
function render(markdown, node) {
  node.replaceChildren();
  markdown.split(/^[ \t]*```.*(?:\n|$)/m).forEach((part, i) => {
    if (i % 2) {
      const box = make('div', 'box');
      box.append(make('pre', '', part), copyButton(() => part));
      return node.append(box);
    }
    part = part.replace(/^\n+|\n+$/g, '');
    for (const line of part.match(/.*\n|.+$/g) || []) {
      const item = line.match(/^(\s*)([-*+]|\d{1,3}[.)]) (.*)/);
      const heading = line.match(/^#{1,6} (.*)/);
      if (item) {
        const made = make('div', 'item', (item[2].length > 1 ? item[2] : '\u2022') + ' ');
        made.style.marginLeft = item[1].length / 2 + 'em';
        node.append(inline(item[3], made));
      } else if (heading) {
        node.append(inline(heading[1], make('b', '')), '\n');
      } else {
        inline(line, node);
      }
    }
  });
}

async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const {done, value} = await reader.read();
    if (done) return;
    const lines = (rest + value).split('\n');
    rest = lines.pop();
    for (const line of lines) {
      if (line.startsWith('data: ') && line !== 'data: [DONE]') yield JSON.parse(line.slice(6));
    }
  }
}

function describe(extra, reason) {
  if (!extra) return '';
  const parts = [];
  if (extra.decode_tokens_per_s > 0) parts.push(Math.round(extra.decode_tokens_per_s) + ' tokens/s');
  parts.push('context ' + extra.window_used.toLocaleString('en') + '/' + extra.window_capacity.toLocaleString('en'));
  if (extra.evicted) parts.push(extra.evicted.toLocaleString('en') + ' tokens dropped');
  if (reason === 'length') parts.push('cut off');
  return parts.join(' \u00b7 ');
}

// Adds the buttons and the note below an answer.
function addTools(message) {
  log.querySelector('.retry')?.remove();
  const tools = add('tools');
  tools.append(copyButton(() => message.content));
  if (message === chat.messages.at(-1)) {
    tools.append(button('Retry', () => {
      if (running) return;
      chat.messages.pop();
      show();
      reply();
    }));
    tools.lastChild.className = 'retry';
  }
  tools.append(make('span', 'note', message.note));
}

function addMessage(message) {
  if (message.role === 'user') return add('turn user').append(make('span', '', message.content));
  if (message.thought) add('turn thought', message.thought);
  render(message.content, add('turn answer'));
  addTools(message);
}

function show() {
  log.replaceChildren();
  if (!chat.messages.length) {
    add('note', 'Nothing you write here leaves the machine that this server runs on. Chats are kept in this browser.');
  }
  chat.messages.forEach(addMessage);
  log.scrollTop = log.scrollHeight;
  list();
}

function list() {
  const all = Object.keys(localStorage).filter(name => name.startsWith(kept)).sort().reverse().map(load).filter(Boolean);
  if (!all.some(one => one.id === chat.id)) all.unshift(chat);
  find('list').replaceChildren(...all.map(one => {
    const row = make('div', one.id === chat.id ? 'here' : '');
    const forget = button('\u00d7', () => {
      localStorage.removeItem(kept + one.id);
      if (one.id === chat.id) open(fresh()); else list();
    });
    forget.ariaLabel = 'Delete ' + titleOf(one);
    row.append(button(titleOf(one), () => open(one)), forget);
    return row;
  }));
}

function open(other) {
  running?.abort();
  running = null;
  send.textContent = 'Send';
  save();
  chat = other;
  sessionStorage.setItem('chat', chat.id);
  document.body.classList.remove('listed');
  show();
  text.focus();
}

async function reply() {
  const mine = chat, message = {role: 'assistant', content: ''};
  const control = running = new AbortController();
  control.keep = () => message.content && store(kept + mine.id, {...mine, messages: [...mine.messages, message]});
  const messages = mine.messages.map(({role, content}) => ({role, content}));
  if (mine.system) messages.unshift({role: 'system', content: mine.system});
  const {system, ...sampling} = settings;
  const thought = add('turn thought'), answer = add('turn answer');
  send.textContent = 'Stop';
  let error = '', frame = 0;
  const draw = () => atEnd(() => {  // at most once a frame
    frame = 0;
    thought.textContent = message.thought || '';
    render(message.content, answer);
  });
  try {
    const got = await ask('/v1/chat/completions', {method: 'POST', signal: control.signal,
      body: JSON.stringify({...sampling, messages, stream: true})});
    if (!got.ok) throw new Error((await got.json()).error.message);
    for await (const event of events(got.body)) {
      if (event.error) throw new Error(event.error.message);
      const choice = event.choices[0];
      if (choice.delta.reasoning_content) message.thought = (message.thought || '') + choice.delta.reasoning_content;
      message.content += choice.delta.content || '';
      frame ||= requestAnimationFrame(draw);
      if (choice.finish_reason) message.note = describe(event.oriel, choice.finish_reason);
    }
  } catch (problem) {
    if (problem.name === 'AbortError') message.note = 'stopped';
    else error = problem instanceof TypeError ? 'The server does not answer: is it still running?' : problem.message;
  }
  cancelAnimationFrame(frame);
  if (message.content) mine.messages.push(message);
  const unanswered = message.content ? null : mine.messages.pop();  // an unanswered message goes back to the field
  if (message.content) store(kept + mine.id, mine);
  if (running !== control) return list();  // another chat is open
  running = null;
  send.textContent = 'Send';
  draw();
  if (message.content) {
    addTools(message);
  } else {
    log.querySelectorAll('.user')[mine.messages.filter(one => one.role === 'user').length].remove();
    text.value = text.value || unanswered.content;
    fit();
  }
  if (error) add('turn note error', error);
  else if (!message.content) add('turn note', message.note || 'no reply');
  list();
  text.focus();
}

function fit() {
  text.style.height = 'auto';
  text.style.height = text.scrollHeight + 2 + 'px';
}

find('form').addEventListener('submit', event => {
  event.preventDefault();
  if (running) return running.abort();
  const content = text.value.trim();
  if (!content) return;
  log.querySelectorAll(':scope > .note').forEach(node => node.remove());
  chat.messages.push({role: 'user', content});
  addMessage(chat.messages.at(-1));
  log.scrollTop = log.scrollHeight;
  text.value = '';
  fit();
  reply();
});
text.addEventListener('input', fit);
text.addEventListener('keydown', event => {
  if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    if (!running) find('form').requestSubmit();
  } else if (event.key === 'ArrowUp' && !text.value) {
    event.preventDefault();
    text.value = chat.messages.findLast(one => one.role === 'user')?.content || '';
    fit();
  }
});
addEventListener('keydown', event => { if (event.key === 'Escape' && !dialog.open) running?.abort(); });
addEventListener('storage', list);
addEventListener('pagehide', () => running?.keep());
find('new').addEventListener('click', () => open(fresh()));
find('chats').addEventListener('click', () => document.body.classList.toggle('listed'));
find('set').addEventListener('click', () => {
  for (const field of dialog.querySelectorAll('[name]')) {
    field.value = (field.name === 'system' ? chat.system : settings[field.name]) ?? '';
  }
  dialog.showModal();
});
find('done').addEventListener('click', () => {
  for (const field of dialog.querySelectorAll('[name]')) {
    if (!field.reportValidity()) return;
  }
  for (const field of dialog.querySelectorAll('[name]')) {
    if (field.type !== 'number') settings[field.name] = field.value.trim();
    else if (field.value) settings[field.name] = Number(field.value);
    else delete settings[field.name];
  }
  chat.system = settings.system;
  store('oriel.settings', settings);
  save();
  dialog.close();
});
show();
ask('/v1/models').then(got => got.json()).then(got => { find('model').textContent = got.data[0].id; })
  .catch(() => {});
</script>
</html>
)page";

}  // namespace

std::string_view chatPage() { return {kPage, sizeof(kPage) - 1}; }

}  // namespace cli
