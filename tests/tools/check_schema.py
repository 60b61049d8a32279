#!/usr/bin/python3
"""check_schema: validates JSON objects, one a line, against a JSON Schema.

usage: check_schema.py SCHEMA FILE

Prints what is wrong with each line that is not valid, and exits with 1 if there is one.
"""
import json
import sys

import jsonschema


def members(pairs):
    """Makes a dict of an object's members; fails if a name comes twice."""
    assert len(dict(pairs)) == len(pairs), f"a member comes twice: {pairs}"
    return dict(pairs)


schema = json.load(open(sys.argv[1], encoding="utf-8"))
jsonschema.Draft202012Validator.check_schema(schema)
bad = 0
for line in open(sys.argv[2], encoding="utf-8"):
    value = json.loads(line, object_pairs_hook=members)
    for fault in jsonschema.Draft202012Validator(schema).iter_errors(value):
        print(f"{fault.json_path}: {fault.message}\n    in {line}", end="")
        bad = 1
sys.exit(bad)
