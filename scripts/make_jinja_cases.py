#!/usr/bin/env python3
"""Writes tests/data/jinja/cases.json: small templates and what Jinja2 makes of them.

usage: scripts/make_jinja_cases.py [TARGET [COUNT [SEED]]]

Needs the package `jinja2` (python3-jinja2), set up as transformers does it: sandboxed, trim_blocks, lstrip_blocks, loop
controls, a tojson without HTML escapes. Templates and values are written for this. COUNT random ones are added to those
by rule; of them only such are kept that Jinja2 renders.
"""

import copy
import datetime
import json
import random
import signal
import sys
import warnings
from pathlib import Path

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

VALUES = {
    "messages": [
        {"role": "system", "content": "You are  "},
        {"role": "user", "content": " Hi é\u00a0\n", "n": 3, "tags": ["a", "B", "c"]},
        {"role": "assistant", "content": None, "tool_calls": [
            {"function": {"name": "f", "arguments": {"x": 1, "y": 2.5, "z": None, "w": True, "items": [1, 2]}}}]},
        {"role": "tool", "content": "<think>abc</think>done"},
    ],
    "d": {"b": 1, "A": 2, "c": "x'y", "items": "key", "n": {"k": [1, {"q": "\u2028\"\\"}]}},
    "l": [3, 1, 2], "e": [], "s": "Hello World", "s2": "a,b,,c", "z": "", "n": None, "t": True, "f": False, "i": 7,
    "neg": -3, "x": 2.5, "fl": 1e-7, "fl2": 1e16, "u8": "日本語 ñandú ÀÉ ß",
    "ws": "\t line1\n  line2\r\n\nline4 \x1c", "ls": ["b", "A", "c"],
    "ld": [{"a": 1, "b": "x"}, {"a": 2, "b": "Y"}, {"b": "z"}],
}

BY_RULE = {
    "scope of set in a loop": "{% set x = 1 %}{% for i in l %}{% set x = i %}{{ x }}{% endfor %}{{ x }}",
    "scope of set in if": "{% if t %}{% set x = 5 %}{% endif %}{{ x }}",
    "namespace survives a loop": "{% set ns = namespace(a=0) %}{% for i in l %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }}",
    "namespace of a dict": "{% set ns = namespace(d, z=1) %}{{ ns.b }}{{ ns.z }}{{ ns.zz is defined }}",
    "loop is undefined in a macro": "{% macro m() %}{{ loop is defined }}{% endmacro %}{% for i in l %}{{ m() }}{% endfor %}",
    "a macro sees what is set before its call": "{% macro m() %}{{ q }}{% endmacro %}{% set q = 1 %}{{ m() }}",
    "a macro has defaults and names": "{% macro m(a, b='B', c=a) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }}|{{ m(1, c=3) }}|{{ m(b=2, a=1) }}|{{ m() }}",
    "a macro recurses": "{% macro m(n) %}{{ n }}{% if n %}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(5) }}",
    "varargs": "{% macro m(a) %}{{ a }}{{ varargs }}{% endmacro %}{{ m(1, 2, 3) }}{{ m(1) }}",
    "too many arguments": "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}",
    "an argument without a parameter": "{% macro m(a) %}{% endmacro %}{{ m(b=2) }}",
    "a call block": "{% macro m(a) %}<{{ caller(a, 2) }}>{% endmacro %}{% call(x, y) m(1) %}{{ x }}-{{ y }}{% endcall %}",
    "a block that is set": "{% set x %} a {{ i }}\n{% endset %}[{{ x }}]{% set y | trim | upper %} a {% endset %}[{{ y }}]",
    "a filter block": "{% filter upper %}a{{ s }}{% endfilter %}",
    "with": "{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a is defined }}",
    "generation": "a {% generation %}\n  b{% set q = 1 %}{% endgeneration %}\n{{ q is defined }}",
    "raw": "{% raw %}{{ x }}{% if %}{% endraw %}\nz{%- raw -%} a {%- endraw -%} b",
    "comments": "a {#- c -#} b\n  {# d #}\nc{# e #}",
    "blocks eat their lines": "a\n  {% if t %}\n  b\n  {% endif %}\nc\n",
    "prints do not": "a\n  {{ i }}\n  b\n\n",
    "minus eats newlines": "a \n\n {%- if t -%} \n b \n {%- endif -%} \n c",
    "plus keeps them": "a\n  {%+ if t %}\n  b\n  {%+ endif +%}\nc",
    "carriage returns": "a\r\n{% if t %}\r\nb\r{% endif %}\r\nc\r\n",
    "undefined prints nothing": "[{{ undef }}{{ d.zz }}{{ d['zz'] }}{{ l[9] }}{{ s[99] }}{{ n.a }}{{ n['a'] }}{{ i.a }}]",
    "an attribute of undefined": "{{ undef.a }}",
    "undefined plus a string": "{{ undef + 'a' }}",
    "undefined in loops and conditions": "{% for i in undef %}x{% endfor %}{{ 1 if undef else 2 }}{{ undef == none }}{{ undef == undef2 }}{{ 'a' in undef }}{{ undef|length }}",
    "tojson of undefined": "{{ undef|tojson }}",
    "none is looped over": "{% for i in n %}{% endfor %}",
    "none in filters": "{{ n|string }}{{ n|trim }}{{ n|upper }}{{ n|default('a') }}{{ n|default('a', true) }}{{ n|tojson }}{{ n|int }}{{ n ~ 'a' }}{{ n|select|list }}",
    "none plus a string": "{{ n + 'a' }}",
    "length of none": "{{ n|length }}",
    "in none": "{{ 'a' in n }}",
    "attribute before item": "{{ d['items'] }}{{ d.items is string }}{{ d.items() | list | length }}{{ d['keys'] is defined }}{{ d.get('items') }}{{ d.get('q', 5) }}{{ d.get('q') }}",
    "python's str": "{{ t }}{{ f }}{{ n }}{{ d }}{{ messages }}{{ ls }}{{ (1,) }}{{ () }}{{ (1, 2) }}{{ x }}{{ fl }}{{ fl2 }}{{ 1e5 }}{{ 100000.0 }}{{ 1.0 }}",
    "python's repr of strings": "{{ ['a', \"b'c\", 'd\"e', 'f\"g\\'h', '\\n\\t\\r\\\\', u8, ws, '\\x7f\\u200b\\u00a0'] }}",
    "tojson": "{{ d|tojson }}{{ messages|tojson }}{{ [1.0, 1e-7, true, none, 'é\\x7f/<>&\\'\"\\n\\b\\f\\x01']|tojson }}{{ {1: 2, none: 3, true: 4, 1.5: 5}|tojson }}",
    "tojson with indent": "{{ d|tojson(indent=4) }}{{ [[], {}, [1, [2]]]|tojson(indent=2) }}",
    "tojson with options": "{{ u8|tojson(ensure_ascii=true) }}{{ d|tojson(separators=(',', ':')) }}{{ d|tojson(sort_keys=true) }}{{ '😀'|tojson(true) }}",
    "tojson of a generator": "{{ ld|map(attribute='a')|tojson }}",
    "dictsort": "{{ d|dictsort }}{{ {'b': 2, 'a': 3, 'C': 1}|dictsort(by='value') }}{{ {'b': 2, 'B': 3, 'a': 1}|dictsort(true) }}{{ {'b': 2, 'a': 3}|dictsort(reverse=true) }}",
    "sort": "{{ ls|sort }}{{ l|sort(reverse=true) }}{{ ls|sort(case_sensitive=true) }}{{ ld|sort(attribute='b') }}{{ [{'a': 2, 'b': 1}, {'a': 1, 'b': 2}, {'a': 1, 'b': 1}]|sort(attribute='a,b') }}",
    "sort of mixed types": "{{ [1, 'a']|sort }}",
    "slices": "{{ l[1:] }}{{ l[:-1] }}{{ l[::-1] }}{{ l[:2] }}{{ l[-2:] }}{{ l[::2] }}{{ u8[1:5] }}{{ u8[::-1] }}{{ u8[-3:-1] }}{{ s[4:1:-1] }}{{ l[5:] }}{{ range(9)[2:7:2] }}",
    "a slice of none": "{{ n[1:] }}",
    "nothing as an index": "{{ l[] is defined }}{{ s[] is defined }}{{ d[] is defined }}{{ {(): 3}[] }}",
    "truncate": "{% for k in [3, 5, 6, 8, 11] %}{{ s|truncate(k, leeway=0) }}|{{ s|truncate(k, true, leeway=0) }}|{{ u8|truncate(k, end='', leeway=1) }}|{% endfor %}{{ s|truncate }}",
    "truncate with leeway": "{{ s|truncate(6) }}|{{ s|truncate(5) }}|{{ (s ~ s)|truncate(9) }}|{{ (s ~ s)|truncate(9, end='…') }}|{{ z|truncate(3) }}",
    "truncate to less than the end": "{{ s|truncate(2) }}",
    "format as a filter": "{{ '%s is %d'|format(s, i) }}{{ 'no'|format }}{{ '%s'|format(l) }}",
    "indices": "{{ l[-1] }}{{ s[0] }}{{ s[-1] }}{{ u8[2] }}{{ l.1 }}{{ messages[1]['tags'][1] }}{{ messages[1].tags.2 }}",
    "precedence": "{{ 'a' + ' b ' | trim }}{{ 1 + 2 * 3 }}{{ not x is defined }}{{ 1 ~ 2 + 3 ~ 4 }}{{ 2 * 3 ~ 4 }}{{ -2 ** 2 }}{{ 2 ** 3 ** 2 }}{{ 1 < 2 == true }}{{ not t and f or t }}{{ 1 if f else 2 if f else 3 }}",
    "concatenation before addition": "{{ 1 + 2 ~ 3 }}",
    "comparisons": "{{ 1 < 2 < 3 }}{{ 1 < 3 < 2 }}{{ 1 == true }}{{ 1 == 1.0 }}{{ 'a' < 'b' }}{{ [1, 2] < [1, 3] }}{{ (1,) == [1] }}{{ 'a' in 'abc' }}{{ 'a' not in ['a'] }}{{ 'b' in d }}{{ 2 in l }}",
    "numbers and strings have no order": "{{ 1 < 'a' }}",
    "arithmetic": "{{ 7 // 2 }}{{ -7 // 2 }}{{ 7 % 3 }}{{ -7 % 3 }}{{ 7 / 2 }}{{ 2.5 * 2 }}{{ 7.5 // 2 }}{{ -7.5 % 2 }}{{ 2 ** 10 }}{{ 2 ** -1 }}{{ 'ab' * 3 }}{{ [1] * 2 }}{{ 0.1 + 0.2 }}{{ 1 - 0.9 }}{{ 1e300 * 1e10 }}{{ true + 1 }}",
    "division by zero": "{{ 1 // 0 }}",
    "and, or give operands": "{{ 0 or 'a' }}{{ '' and 'b' }}{{ 'a' and 'b' }}{{ none or '' }}",
    "string literals": "{{ 'a' \"b\" 'c' }}{{ '\\n\\t\\\\\\'\\\"' }}{{ '\\x41\\u00e9\\q' }}",
    "numbers": "{{ 1_000 }}{{ 0x1F }}{{ 0b11 }}{{ 0o17 }}{{ 1.5e3 }}{{ 1e-5 }}",
    "dict literals": "{{ {'a': 1, 'b': [2], 'a': 3,} }}{{ {}.get('a') }}{{ {'a': {'b': 1}}.a.b }}",
    "braces before the end": "{{ {'a': {'b': 1}}}}",
    "a tuple is printed": "{{ 1, 2 }}",
    "loop": "{% for i in ls %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.cycle(1, 2) }} {% endfor %}",
    "loop.changed": "{% for i in [1, 1, 2] %}{{ loop.changed(i) }}{% endfor %}",
    "else of a loop": "{% for i in e %}a{% else %}b{% endfor %}{% for i in l %}a{% else %}b{% endfor %}{% for i in l if i > 9 %}a{% else %}b{% endfor %}",
    "break and continue": "{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 5 %}{% break %}{% endif %}{{ i }}{% endfor %}",
    "a loop with a condition counts what it keeps": "{% for i in l if i != 1 %}{{ loop.index }}{{ i }}{{ loop.last }}{% endfor %}",
    "loops unpack": "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}{% set p, q = 1, 2 %}{{ p }}{{ q }}",
    "too few to unpack": "{% for a, b in [(1,)] %}{% endfor %}",
    "a loop over strings and dicts": "{% for c in u8 %}{{ c }}.{% endfor %}{% for k in d %}{{ k }}.{% endfor %}",
    "tests": "{{ s is string }}{{ d is mapping }}{{ s is sequence }}{{ d is sequence }}{{ l is iterable }}{{ i is iterable }}{{ t is number }}{{ t is integer }}{{ i is integer }}{{ x is float }}{{ t is boolean }}{{ t is true }}{{ 1 is true }}{{ f is false }}{{ n is none }}{{ undef is undefined }}{{ undef is none }}{{ undef is iterable }}{{ d.items() is sequence }}{{ 3 is odd }}{{ 4 is even }}{{ 6 is divisibleby 3 }}{{ 'a' is in 'abc' }}{{ 1 is sameas 1 }}{{ 'a' is lower }}{{ 'A' is upper }}{{ 1 is eq 1 }}{{ 1 is ne(2) }}{{ 1 is lt 2 }}{{ s is not none }}{{ 'upper' is filter }}",
    "selectattr": "{{ ld|selectattr('a')|list }}{{ ld|selectattr('a', 'defined')|list }}{{ ld|selectattr('b', 'equalto', 'x')|list }}{{ ld|rejectattr('a', 'gt', 1)|map(attribute='b')|list }}",
    "select, reject, map": "{{ l|select('odd')|list }}{{ l|reject('equalto', 1)|list }}{{ [0, 1, '']|select|list }}{{ ls|map('upper')|join }}{{ ld|map(attribute='a', default='-')|list }}{{ ls|map('replace', 'b', 'B')|list }}",
    "a generator is true and has no length": "{{ 1 if e|map('upper') else 2 }}{{ l|select|length }}",
    "join": "{{ l|join }}{{ l|join(', ') }}{{ ld|join('-', attribute='b') }}{{ s2|join('.') }}{{ '-'.join(ls) }}",
    "default": "{{ undef|default('a') }}{{ z|default('a') }}{{ z|default('a', true) }}{{ undef|d }}{{ f|default(1, boolean=true) }}{{ d.zz|default({}) }}",
    "first, last, min, max, sum": "{{ l|first }}{{ l|last }}{{ l|min }}{{ l|max }}{{ l|sum }}{{ ls|min }}{{ ls|max(case_sensitive=true) }}{{ e|first is defined }}{{ e|min is defined }}{{ ld[:2]|sum(attribute='a') }}{{ s|first }}",
    "unique, reverse, list": "{{ [1, 2, 1, 'a', 'A']|unique|list }}{{ l|reverse|list }}{{ s|reverse }}{{ s|list }}{{ d|list }}{{ range(3)|list }}",
    "int, float, round, abs": "{{ '12'|int }}{{ ' 12 '|int }}{{ '1.9'|int }}{{ 'x'|int }}{{ 'x'|int(5) }}{{ 'ff'|int(base=16) }}{{ 2.9|int }}{{ '1.5'|float }}{{ 'x'|float }}{{ 2.5|round }}{{ 2.55|round(1) }}{{ 2.4|round(0, 'ceil') }}{{ -3|abs }}{{ (0-3)|abs }}{{ 3|round }}",
    "letters": "{{ s|upper }}{{ s|lower }}{{ u8|upper }}{{ u8|lower }}{{ \"it's a-b c\"|title }}{{ \"it's\".title() }}{{ 'hELLO w'|capitalize }}{{ 'Ab'.swapcase() }}",
    "indent": "{{ ws|indent }}{{ 'a\\n\\nb'|indent(2, true) }}{{ 'a\\n\\nb'|indent(2, blank=true) }}{{ 'a\\nb\\n'|indent('> ') }}",
    "indent of a number": "{{ 1|indent }}",
    "replace": "{{ s|replace('l', 'L') }}{{ s|replace('l', 'L', 1) }}{{ 'abc'.replace('', '-') }}{{ 'aaa'.replace('a', '', 2) }}{{ 12|replace(1, 2) }}",
    "trim and strip": "[{{ ws|trim }}][{{ '\\u00a0\\u3000a\\u200b\\u2003\\x85'|trim }}][{{ '--a-'|trim('-') }}][{{ '\\n a \\n'.strip('\\n') }}][{{ 'abcab'.lstrip('ba') }}][{{ 'abcab'.rstrip('ba') }}][{{ ' a '.rstrip() }}]",
    "split": "{{ s2.split(',') }}{{ 'a  b c '.split() }}{{ 'a  b c '.split(none, 1) }}{{ s2.split(',', 1) }}{{ s2.split('</x>')[-1] }}{{ s2.rsplit(',', 1) }}{{ ''.split() }}{{ ''.split(',') }}{{ ws.splitlines() }}{{ 'a\\nb\\n'.splitlines(true) }}",
    "split at nothing": "{{ s.split('') }}",
    "string methods": "{{ s.startswith('He') }}{{ s.endswith(('x', 'ld')) }}{{ s.find('o') }}{{ s.rfind('o') }}{{ s.find('z') }}{{ u8.find('n') }}{{ s.count('l') }}{{ s.index('W') }}{{ s.partition(' ') }}{{ s.rpartition('z') }}{{ s.removeprefix('He') }}{{ s.removesuffix('ld') }}{{ '7'.zfill(3) }}{{ '-7'.zfill(4) }}{{ 'a'.center(4, '*') }}{{ 'ab'.center(5, '*') }}{{ 'a'.ljust(3) }}{{ 'a'.rjust(3) }}{{ '12'.isdigit() }}{{ 'ab'.isalpha() }}{{ 'a1'.isalnum() }}{{ ' '.isspace() }}{{ 'A'.isupper() }}{{ 'a1'.islower() }}",
    "format": "{{ '{} {} {{}}'.format(1, 'a') }}{{ '{1}{0}{x}'.format(1, 2, x=3) }}{{ '%s %d %r%%' % ('a', 2, 'b') }}{{ '%s' % s }}",
    "too few values to format": "{{ '%s %s' % ('a',) }}",
    "list methods": "{{ l.index(1) }}{{ l.count(3) }}",
    "lists are not changed": "{{ l.append(1) }}",
    "dicts are not changed": "{{ d.update({}) }}",
    "dict methods": "{{ d.keys() }}{{ d.values()|list }}{{ d.items() }}{{ d|items|list }}{{ dict(a=1, b=2) }}{{ dict(d, b=5).b }}",
    "safe": "{{ '<a>' + ('b'|safe) }}{{ '<a>' ~ ('b'|safe) }}{{ ('<a>'|safe) + '<b>' }}{{ '<&\\'\">'|e }}{{ ('<'|e)|e }}{{ ('<'|safe)|upper + '<' }}",
    "an unknown filter": "{{ s|frobnicate }}",
    "an unknown filter that is not reached": "{% if f %}{{ s|frobnicate }}{% endif %}a",
    "an unknown test": "{{ s is frobnicated }}",
    "an unknown function": "{{ frobnicate() }}",
    "something is called that is none": "{{ s() }}",
    "range": "{{ range(3)|list }}{{ range(1, 7, 2)|list }}{{ range(3, 0, -1)|list }}{{ range(0)|list }}{{ range(5) }}{{ range(5, 0, -2) }}{{ 3 in range(5) }}",
    "a range that is too long": "{{ range(200000) }}",
    "raise_exception": "{{ raise_exception('Only user and assistant roles are supported!') }}",
    "strftime_now": "{{ strftime_now('%Y-%m-%d %d %b %B %A %a %j %y %H:%M:%S %p %I %-d %e %% %F %U %W %u %w %D %T') }}",
    "attr": "{{ ''|attr('x') is defined }}{{ messages|map(attribute='content.0')|first }}",
    "wordcount": "{{ s|wordcount }}{{ u8|wordcount }}{{ ''|wordcount }}",
    "a tag that ends nowhere": "{% if t",
    "a string that ends nowhere": "{{ 'a }}",
    "a block that ends nowhere": "{% for i in l %}",
    "an end that was not begun": "{% endif %}",
    "a word that is no statement": "{% frob %}",
    "two words": "{{ a b }}",
    "an empty print": "{{ }}",
    "a namespace is needed": "{% set d.a = 1 %}",
}

STRINGS = ["''", "'a'", "'l'", "' '", "'\\n'", "'</think>'", "', '", "'Hello'", "\"it's\"", "'é'", "'b'", "'content'"]
ATTRIBUTES = ["role", "content", "n", "a", "b", "tags", "k", "c", "function"]
FILTERS = ["upper", "lower", "trim", "length", "string", "tojson", "first", "float", "join", "join(',')",
           "default('D')", "default('D', true)", "capitalize", "title", "sort", "abs", "round(1)", "sum", "min", "max",
           "replace('l','L')", "wordcount", "tojson(indent=2)", "tojson(sort_keys=true)", "list|length", "int(5)",
           "trim('H')", "e", "safe", "sort(reverse=true)", "string|length", "list|tojson"]
TESTS = ["defined", "undefined", "none", "string", "mapping", "iterable", "sequence", "boolean", "true", "number",
         "integer", "float", "odd", "lower", "in l", "eq 1", "ne none", "gt 1", "not none", "not defined"]
METHODS = ["split()", "split(',')", "split('l', 1)", "strip()", "strip('H')", "rstrip('d')", "upper()", "title()",
           "startswith('H')", "replace('l', '')", "find('o')", "count('l')", "splitlines()", "rsplit('l')",
           "partition('o')", "zfill(14)", "center(16, '*')", "removeprefix('He')", "get('b', 5)", "items()|list",
           "keys()|list", "index(1)"]


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_same"), [], [], body).set_lineno(line)

    def _same(self, caller):
        return caller()


def make_environment():
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = datetime.datetime(2026, 11, 22, 12).strftime
    return environment


class Author:
    """Writes random templates."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def pick(self, *choices):
        return self.random.choice(choices)

    def primary(self, depth):
        r = self.random.random()
        if r < .5:
            return self.pick(*VALUES, "undef")
        if r < .65:
            return self.pick(*STRINGS)
        if r < .8:
            return self.pick("0", "1", "2", "-1", "10", "2.5", "true", "none", "[]", "{}", "range(3)")
        if r < .9:
            return "[" + ", ".join(self.expression(depth - 1) for _ in range(self.random.randint(0, 3))) + "]"
        return "(" + self.expression(depth - 1) + ")"

    def expression(self, depth):
        if depth <= 0:
            return self.pick(*VALUES, *STRINGS, "0", "1", "2", "undef")
        r = self.random.random()
        if r < .2:
            return self.primary(depth)
        if r < .42:
            return self.expression(depth - 1) + "|" + self.pick(*FILTERS)
        if r < .52:
            return self.primary(depth - 1) + "." + self.pick(*ATTRIBUTES)
        if r < .6:
            return self.pick("l", "s", "ls", "u8", "messages") + "[" + self.pick("0", "-1", "1:", "::-1", ":2", ":-1") + "]"
        if r < .7:
            return self.pick("s", "s2", "d", "u8", "ws", "l") + "." + self.pick(*METHODS)
        if r < .86:
            operator = self.pick("+", "-", "*", "~", "==", "!=", "<", "in", "not in", "and", "or", "//", "%")
            return self.expression(depth - 1) + " " + operator + " " + self.expression(depth - 1)
        if r < .95:
            return self.expression(depth - 1) + " is " + self.pick(*TESTS)
        return f"({self.expression(depth - 1)} if {self.expression(depth - 1)} else {self.expression(depth - 1)})"

    def tag(self, words):
        return "{%" + self.pick("", "", "-", "+") + " " + words + " " + self.pick("", "", "-") + "%}"

    def blank(self):
        return self.pick("", " ", "\n", "  \n  ", "x\n", " y ", "\n\n", "\t", "\n    ", "z  \r\n")

    def body(self, depth):
        out = ""
        for _ in range(self.random.randint(1, 3)):
            out += self.blank()
            r = self.random.random()
            if depth <= 0 or r < .5:
                out += "{{" + self.pick("", "-") + " " + self.expression(2) + " " + self.pick("", "-") + "}}"
            elif r < .65:
                out += self.tag("if " + self.expression(1)) + self.body(depth - 1) + self.tag("else")
                out += self.body(depth - 1) + self.tag("endif")
            elif r < .8:
                out += self.tag("for m in " + self.pick("messages", "l", "ls", "d", "s2", "ld", "e"))
                out += self.pick("", "{{ loop.index }}", "{{ loop.nextitem }}") + self.body(depth - 1) + self.tag("endfor")
            elif r < .9:
                out += self.tag("set q = " + self.expression(2)) + "{{ q }}"
            elif r < .95:
                out += "{#" + self.pick(" c ", "- c -") + "#}"
            else:
                out += self.tag("set q | trim") + self.body(depth - 1) + self.tag("endset") + "{{ q }}"
        return out + self.blank()


def render(environment, template):
    try:
        return {"expected": environment.from_string(template).render(**copy.deepcopy(VALUES))}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def main():
    root = Path(__file__).resolve().parents[1]
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else root / "tests/data/jinja/cases.json"
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 400
    author = Author(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    warnings.simplefilter("ignore")
    signal.alarm(300)
    environment = make_environment()
    cases = [{"name": name, "template": template, **render(environment, template)} for name, template in BY_RULE.items()]
    while len(cases) < len(BY_RULE) + count:
        template = author.body(2)
        rendered = render(environment, template)
        # Python prints some objects with their memory address.
        if "expected" in rendered and " at 0x" not in rendered["expected"] and len(rendered["expected"]) < 1000:
            cases.append({"name": f"random {len(cases) - len(BY_RULE)}", "template": template, **rendered})
    target.write_text(json.dumps({"values": VALUES, "cases": cases}, indent=1, ensure_ascii=True) + "\n")


if __name__ == "__main__":
    main()
