// Writes dist/options.d.ts, the option types of the module: `node make_types.mjs [FOLDER]`, by default web/dist.
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

import { optionList } from './option_list.mjs';

const dist = resolve(process.argv[2] || fileURLToPath(new URL('dist', import.meta.url)));
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

const options = await optionList(dist);
const parts = [['load', 'LoadOptions'], ['session', 'SessionOptions'], ['reply', 'ReplyOptions']].map(([scope, name]) =>
  [`export interface ${name} {`, ...options.filter((option) => option.scope === scope).flatMap(linesOf), '}', ''].join('\n'));
writeFileSync(join(dist, 'options.d.ts'), `// Made by make_types.mjs.\n${parts.join('\n')}`);
