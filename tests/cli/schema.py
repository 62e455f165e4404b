"""Holds outputs of hbmsim and its example configurations against its JSON Schemas by a validator
(PyPI's jsonschema). Lines of standard input: `result KIND FILE` or `model FILE`; prints TAP's
`ok`/`not ok` of each. Usage: schema.py MODEL.schema.json RESULTS.schema.json"""

import json
import re
import sys

import jsonschema
import yaml


class Loader(yaml.SafeLoader):
    """Numbers as hbmsim reads them (1e-3 is one), no dates."""


Loader.yaml_implicit_resolvers = {
    key: [(tag, form) for tag, form in rows if not tag.endswith("timestamp")]
    for key, rows in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"^[-+]?[0-9]+(\.[0-9]+)?[eE][-+]?[0-9]+$"), "-+0123456789")


def schema_of(words, model, results):
    if words[0] == "model":
        return model
    return {"$ref": "#/$defs/result." + words[1], "$defs": results["$defs"]}


def documents(path):
    with open(path) as file:
        if path.endswith("l"):
            return [json.loads(line) for line in file] if path.endswith(".jsonl") else [
                yaml.load(file, Loader)]
        return [json.load(file)]


def main():
    model, results = (json.load(open(path)) for path in sys.argv[1:3])
    check = jsonschema.Draft202012Validator
    for schema in (model, results):
        check.check_schema(schema)
    for number, line in enumerate(sys.stdin, 1):
        words = line.split()
        validator = check(schema_of(words, model, results))
        wrong = [error for document in documents(words[-1])
                 for error in validator.iter_errors(document)]
        print("not ok" if wrong else "ok", number, "-", " ".join(words))
        for error in wrong[:3]:
            print("#", "/".join(map(str, error.absolute_path)), error.message[:200])


main()
