#!/usr/bin/env python3
"""check_schema: validates JSON objects, one a line, against a JSON Schema.

usage: check_schema.py SCHEMA FILE

Prints what is wrong with each line that is not valid, and exits with 1 if there is one. It knows
the keywords that docs/messages.schema.json uses, and fails at any other. Debian's jsonschema is not
needed.
"""
import json
import re
import sys

TYPES = {
    "object": lambda v: isinstance(v, dict),
    "string": lambda v: isinstance(v, str),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
}
IGNORED = {"$schema", "$id", "$defs", "title", "description", "then"}


def faults(value, schema, root, at):
    """Yields a text for each rule of the schema that the value breaks."""
    for word, rule in schema.items():
        if word == "$ref":
            yield from faults(value, root["$defs"][rule.removeprefix("#/$defs/")], root, at)
        elif word == "type":
            if not TYPES[rule](value):
                yield f"{at}: not of type {rule}: {value!r}"
        elif word == "enum":
            if value not in rule:
                yield f"{at}: not one of {rule}: {value!r}"
        elif word == "const":
            if value != rule:
                yield f"{at}: not {rule!r}: {value!r}"
        elif word == "pattern":
            if isinstance(value, str) and not re.search(rule, value):
                yield f"{at}: does not match {rule}: {value!r}"
        elif word == "minimum":
            if isinstance(value, int) and value < rule:
                yield f"{at}: less than {rule}: {value!r}"
        elif word == "required":
            for name in rule:
                if name not in value:
                    yield f"{at}: {name} is missing"
        elif word == "properties":
            for name, of in rule.items():
                if name in value:
                    yield from faults(value[name], of, root, f"{at}.{name}")
        elif word == "additionalProperties":
            assert rule is False
            for name in value:
                if name not in schema["properties"]:
                    yield f"{at}: {name} is not in the schema"
        elif word == "allOf":
            for each in rule:
                yield from faults(value, each, root, at)
        elif word == "if":
            if not list(faults(value, rule, root, at)):
                yield from faults(value, schema["then"], root, at)
        elif word not in IGNORED:
            raise SystemExit(f"the schema has a keyword that is not known: {word}")


def members(pairs):
    """Makes a dict of an object's members; fails if a name comes twice."""
    assert len(dict(pairs)) == len(pairs), f"a member comes twice: {pairs}"
    return dict(pairs)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        schema = json.load(file)
    bad = 0
    with open(sys.argv[2], encoding="utf-8") as file:
        for line in file:
            for fault in faults(json.loads(line, object_pairs_hook=members), schema, schema, "$"):
                print(f"{fault}\n    in {line}", end="")
                bad = 1
    sys.exit(bad)


main()
