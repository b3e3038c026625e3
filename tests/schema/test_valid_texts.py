#!/usr/bin/env python3
"""Texts of JSON schemas, made by chance and token by token under a mask, are valid to python3-jsonschema.

test_valid_texts.py ORIEL_SCHEMA_TEXTS REFERENCE_DATA [SEED [SCHEMAS]]
"""

import json
import os
import random
import subprocess
import sys

import jsonschema

FORMATS = jsonschema.FormatChecker(["date", "email", "ipv4", "ipv6", "uuid"])
NAMES = ["name", "id", "a", "ab", "abc", "é", "with space", 'q"uote', "tab\t", "日本", "kind", "b/c", "~t", ""]
PATTERNS = [r"^\d{4}$", "^[a-z]+$", "a+", "^(yes|no)$", "^#[0-9a-fA-F]{6}$", r"^[^@]+@[^@]+\.[a-z]{2,}$", "foo|^bar", "x$",
            "^.{2,5}$", r"^\S+$", r"\d", r"^\w+( \w+)*$", r"^[\w.-]+$", r"^\D*$", r"^\W$", r"^[^\d\s]{1,3}$",
            "^(?:a|b|cd)*?$", r"^\u00e9+$", r"^[\x20-\x7e]*$", "^[A-Z][a-z]{0,9}$", r"^\s*\S", r"^(\+\d{1,3} )?\d{3}-\d{4}$",
            r'^["\\]{1,4}$', r"^\t\n$", "^(a?){3}$", "[ab]{2,3}c", "^$", r"\.$", r"^v?\d+\.\d+\.\d+$", "^[^a]$", r"^[\s]$",
            r"^[^\W]{2}$", r"^-?\d+(?:\.\d+)?$"]
KNOWN = ["date", "email", "uuid", "ipv4", "ipv6", "hostname", "date-time", "duration", "uri", "uri-reference"]
NUMBERS = [0, 1, -1, 5, 10, 100, -90, 90, 2.5, -0.5, 0.01, 19.99, 1e3, -1e-3, 123456.789, 2**53 - 1, -2**31, 0.1, 3.14159,
           1e10, 99.5, -7]


class Schemas:
    """Schemas by chance, of the kinds that apps write and of stranger ones."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def may(self, chance):
        return self.random.random() < chance

    def one(self, of):
        return self.random.choice(of)

    def count(self, most):
        return self.random.randrange(most)

    def value(self, depth=2):
        kinds = [None, True, False, self.one([0, 1, -5, 42, 1.5, -0.25, 1e3]), self.one(["", "a", "é", 'q"\\\n\t', "\x01"])]
        if depth:
            kinds += [[self.value(depth - 1) for _ in range(self.count(3))],
                      {self.one(NAMES): self.value(depth - 1) for _ in range(self.count(3))}]
        return self.one(kinds)

    def number(self, kind):
        schema = {"type": kind}
        for low, high in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
            if self.may(0.5):
                schema[self.one([low, low, high])] = self.one(NUMBERS)
        if self.may(0.3):
            steps = [1, 2, 3, 5, 7, 10, 25, 100, 12, 60, 0.5, 2.5, 1000] + ([0.25, 0.01, 0.1, 0.05, 0.001, 1.5, 0.2, 0.3]
                                                                         if kind == "number" else [])
            schema["multipleOf"] = self.one(steps)
        return schema

    def string(self):
        schema = {"type": "string"}
        if self.may(0.3):
            schema["pattern"] = self.one(PATTERNS)
        elif self.may(0.3):
            schema["format"] = self.one(KNOWN)
        if self.may(0.4):
            schema["minLength"] = self.one([0, 1, 2, 3, 5, 10, 70])
        if self.may(0.4):
            schema["maxLength"] = self.one([0, 1, 2, 3, 5, 8, 20, 64, 65, 100, 300, 1000])
        return schema

    def array(self, depth):
        schema = {"type": "array"}
        if self.may(0.7):
            schema["items"] = self.schema(depth - 1)
        if self.may(0.3):
            schema["prefixItems"] = [self.schema(depth - 1) for _ in range(1 + self.count(3))]
        if self.may(0.4):
            schema["minItems"] = self.count(4)
        if self.may(0.4):
            schema["maxItems"] = self.one([0, 1, 2, 3, 5, 70])
        return schema

    def object(self, depth):
        schema = {"type": "object"}
        names = self.random.sample(NAMES, self.count(5))
        if self.may(0.85):
            schema["properties"] = {name: self.schema(depth - 1) for name in names}
        if self.may(0.6):
            schema["required"] = [name for name in names if self.may(0.6)]
        if self.may(0.6):
            schema["additionalProperties"] = self.one([False, True, self.schema(depth - 1)])
        for keyword in ("minProperties", "maxProperties"):
            if self.may(0.15):
                schema[keyword] = self.count(4)
        return schema

    def tagged(self, depth):
        return {"oneOf": [{"type": "object", "required": ["kind"], "properties": {
            "kind": {"const": tag}, **{name: self.schema(depth - 1) for name in self.random.sample(NAMES[:5], 2)}}}
            for tag in ("a", "b")]}

    def small(self):
        return self.one([lambda: {"enum": self.random.sample(["a", "b", "c", 1, 2, True, None], 1 + self.count(3))},
                         lambda: {"const": self.one(["a", "b", 1, True, None])}, lambda: {"type": "boolean"},
                         lambda: {"type": "string", "maxLength": self.count(3)},
                         lambda: {"type": "integer", "minimum": self.count(4)},
                         lambda: {"pattern": self.one(PATTERNS)}, lambda: {"type": self.one(["string", "integer", "null"])}])()

    def shallow(self):
        """An object's part: names that are few, so that parts meet."""
        names = self.random.sample(["a", "b", "c"], 1 + self.count(2))
        part = {}
        if self.may(0.7):
            part["properties"] = {name: self.one([self.small, self.small, lambda: False])() for name in names}
        if self.may(0.5) or not part:
            part["required"] = names[:1 + self.count(2)]
        if self.may(0.2):
            part["type"] = "object"
        return part

    def conditional(self):
        """Keywords for negations and conditions."""
        part = {"type": "object", **({"properties": {name: self.small() for name in ("a", "b", "c")}} if self.may(0.7) else {})}
        ways = {"not": self.shallow, "oneOf": lambda: [self.shallow() for _ in range(2 + self.count(2))],
                "anyOf": lambda: [self.shallow(), {"not": self.shallow()}], "if": self.shallow,
                "dependentRequired": lambda: {"a": ["b"], "b": self.one([["c"], []])},
                "dependentSchemas": lambda: {"a": self.shallow()}, "propertyNames": lambda: self.one(
                    [{"pattern": "^[a-c]"}, {"maxLength": 2}, {"enum": ["a", "b", "zz"]}, {"not": {"const": "c"}}]),
                "patternProperties": lambda: {pattern: self.small() for pattern in self.random.sample(
                    ["^a", "b", "^.$", "^x[0-9]+$", "^[^a]", ".*"], 1 + self.count(3))},
                "additionalProperties": lambda: self.one([False, True, self.small()]),
                "minProperties": lambda: self.count(3), "maxProperties": lambda: 1 + self.count(3)}
        for keyword in self.random.sample(sorted(ways), 1 + self.count(4)):
            part[keyword] = ways[keyword]()
        if "if" in part:
            part.update({"then": self.shallow(), **({"else": self.shallow()} if self.may(0.5) else {})})
        return part

    def choosing(self):
        """The same of arrays and plain values."""
        listed = {"enum": self.random.sample(["a", "b", "c", 1, 2, True, False, None, 1.5], 1 + self.count(9))}
        return self.one([
            lambda: {"type": "array", "items": listed, "uniqueItems": True, **self.counts(4)},
            lambda: {"type": "array", "items": self.one([listed, self.small()]), "contains": self.small(), **self.counts(4)},
            lambda: {"type": "array", "not": {"items": self.small()}, **self.counts(4)},
            lambda: {"type": "array", "not": {"contains": self.small()}, **self.counts(4)},
            lambda: {"oneOf": [self.small(), self.small(), self.one([self.small(), {"not": self.small()}])]},
            lambda: {"not": self.small()}, lambda: {**self.string(), "not": self.small()},
            lambda: {**self.number(self.one(["integer", "number"])), "not": self.one([listed, self.number("number")])},
            lambda: {"not": {"anyOf": [self.small(), self.small()]}}, lambda: {"not": {"allOf": [self.small(), self.small()]}},
            lambda: {"not": {"oneOf": [self.small(), self.small()]}}, lambda: {"not": {"not": self.small()}},
            lambda: {"enum": [{"a": 1}, {"a": 1, "b": "a"}, {}, []], "not": self.one([self.shallow(), self.small()])},
            lambda: {"not": {"enum": [{"a": 1}, [], "a", 1]}}, lambda: {"not": {"const": self.one([{"a": 1}, {}, [], 1.5])}},
            lambda: {"type": "array", "prefixItems": [self.small(), self.small()], "not": {"prefixItems": [self.small()]}},
            lambda: {"allOf": [{"if": self.small(), "then": self.small(), "else": self.small()}], **self.small()},
            lambda: {"type": "integer", self.one(["minimum", "exclusiveMinimum"]): self.one(
                [2**53, 2**53 + 1, 2**63 - 1, 10**20, -2**60]), **({"maximum": 10**25} if self.may(0.3) else {})}])()

    def counts(self, most):
        return {keyword: self.count(most) for keyword in ("minItems", "maxItems") if self.may(0.3)}

    def schema(self, depth):
        leaves = [lambda: self.number("integer"), lambda: self.number("number"), self.string, self.string,
                  lambda: {"type": self.one(["boolean", "null"])},
                  lambda: {"enum": [self.value() for _ in range(1 + self.count(4))]},
                  lambda: {"const": self.value()},
                  lambda: self.one([True, False, {}, {"$ref": "#"}, {"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}]),
                  lambda: {**self.number("integer"), **self.string(), "type": ["integer", "string", "null"]},
                  lambda: {"minimum": self.one(NUMBERS), "maxLength": self.count(9)},
                  self.conditional, self.conditional, self.choosing, self.choosing]
        inner = [lambda: self.array(depth), lambda: self.object(depth), lambda: self.object(depth),
                 lambda: self.tagged(depth),
                 lambda: {self.one(["anyOf", "oneOf", "allOf"]): [self.schema(depth - 1) for _ in range(1 + self.count(3))]},
                 lambda: {**self.object(depth), self.one(["anyOf", "oneOf"]): [self.object(depth - 1), self.object(depth - 1)]}]
        return self.one(leaves + inner if depth > 0 else leaves)()

    def whole(self):
        schema = self.schema(3)
        if isinstance(schema, dict):
            schema = {**schema, "$defs": {"A": self.schema(2), "B": self.schema(1)}}
        return schema


def ask(program, questions):
    text = "".join(json.dumps(question) + "\n" for question in questions)
    done = subprocess.run([program], input=text, stdout=subprocess.PIPE, text=True, check=True, encoding="utf-8")
    return [json.loads(line) for line in done.stdout.split("\n") if line]


def faults(schema, texts):
    validator = jsonschema.Draft202012Validator(schema, format_checker=FORMATS)
    for text in texts:
        try:
            error = next(iter(validator.iter_errors(json.loads(text))), None)
        except (ValueError, RecursionError) as problem:
            error = problem
        if error is not None:
            yield f"{text[:300]} is not valid by {json.dumps(schema)[:800]}: {str(error)[:200]}"


def main():
    program, data = sys.argv[1], sys.argv[2]
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    count = int(sys.argv[4]) if len(sys.argv) > 4 else 250
    by_chance = Schemas(seed)
    schemas = [by_chance.whole() for _ in range(count)]
    golden = os.path.join(data, "schemas", "schemas.json")
    n_golden = 0
    if os.path.exists(golden):
        with open(golden, encoding="utf-8") as file:
            own = [case["schema"] for case in json.load(file)["schemas"]]
        n_golden = len(own)
        schemas = own + schemas
    answers = ask(program, [{"schema": schema, "make": 20, "walk": 4, "seed": seed + i, "open": i % 2 == 1}
                            for i, schema in enumerate(schemas)])
    assert len(answers) == len(schemas), "it ended early"
    wrong, judged, refused = [], 0, 0
    for i, (schema, answer) in enumerate(zip(schemas, answers)):
        if answer["status"] != 0:
            refused += 1
            if i < n_golden or not answer["error"]:
                wrong.append(f"refused: {json.dumps(schema)[:300]}: {answer['error']}")
            continue
        if answer["stuck"]:
            wrong.append(f"stuck: {json.dumps(schema)[:800]}")
        wrong += faults(schema, answer["made"] + answer["walked"])
        judged += len(answer["made"]) + len(answer["walked"])
    print(f"{len(schemas)} schemas, {refused} refused, {judged} texts judged, {len(wrong)} wrong")
    for line in wrong[:20]:
        print(line)
    return 1 if wrong or judged < 10 * (len(schemas) - refused) else 0


if __name__ == "__main__":
    sys.exit(main())
