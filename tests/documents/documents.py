# SPDX-License-Identifier: Apache-2.0
"""
The documents that ramseal prints for programs, compared with formats/json/*.schema.json.

Those schemas let members through that they do not name, because readers must: a newer ramseal may have
more of them. Here such a member is an error: whatever a command prints is to be described.
"""

import json
import threading
import warnings
from pathlib import Path

import jsonschema

warnings.filterwarnings('ignore', category=DeprecationWarning, module='documents')  # newer ones than Debian's

FOLDER = Path(__file__).resolve().parents[2] / 'formats/json'
SCHEMAS = {}
VALIDATORS = {}
LONG = 64  # elements of a list, or documents one after the other
SEEN = {}  # how many of a shape
ONE_AT_A_TIME = threading.Lock()  # a resolver remembers where it is


class Undocumented(AssertionError):
    pass


def schema(name):
    """formats/json/NAME.schema.json"""
    if not SCHEMAS:
        for path in FOLDER.glob('*.schema.json'):
            SCHEMAS[path.name] = json.loads(path.read_text())
    return SCHEMAS[name + '.schema.json']


def validator(name):
    if name not in VALIDATORS:
        root = schema(name)
        resolver = jsonschema.RefResolver(root['$id'], root, store=SCHEMAS)
        VALIDATORS[name] = jsonschema.Draft202012Validator(root, resolver=resolver)
    return VALIDATORS[name]


def in_place(v, s, value):
    """What is said of this very value: the schema itself, and those that it refers to, with where they are."""
    yield v, s
    if '$ref' in s:
        url, there = v.resolver.resolve(s['$ref'])  # of the file that `s` stands in
        yield from in_place(validator_at(url), there, value)
    for part in s.get('allOf', []):
        yield from in_place(v, part, value)
    for part in s.get('anyOf', []) + s.get('oneOf', []):
        if v.evolve(schema=part).is_valid(value):
            yield from in_place(v, part, value)
    if 'if' in s:
        said = 'then' if v.evolve(schema=s['if']).is_valid(value) else 'else'
        yield from in_place(v, s.get(said, {}), value)


def validator_at(url):
    return validator(url.partition('#')[0].removesuffix('.schema.json'))


def undocumented(schemas, value, path='$'):
    """
    Paths of members that no schema names. `schemas`: (validator, schema) of this value. What an empty schema
    is of may be anything, and so may what is in it.
    """
    if any(s == {} for _, s in schemas):
        return
    said = [found for v, s in schemas for found in in_place(v, s, value)]
    if isinstance(value, dict):
        for name, child in value.items():
            of_child = []
            for v, s in said:
                if name in s.get('properties', {}):
                    of_child.append((v, s['properties'][name]))
                elif isinstance(s.get('additionalProperties'), dict):
                    of_child.append((v, s['additionalProperties']))
            if of_child:
                yield from undocumented(of_child, child, f'{path}.{name}')
            else:
                yield f'{path}.{name}'
    elif isinstance(value, list):
        items = [(v, s['items']) for v, s in said if 'items' in s]
        for i, child in enumerate(value):
            yield from undocumented(items, child, f'{path}[{i}]')


def shape(value):
    """What a document is like, whatever its texts and numbers are."""
    if isinstance(value, dict):
        return tuple((name, shape(child)) for name, child in value.items())
    if isinstance(value, list):
        return tuple(sorted({repr(shape(child)) for child in value}))
    return type(value).__name__


def thinned(value):
    """
    Of long lists, whose elements are mostly alike, the first of each shape, and every so many: a megabyte of
    them takes a second to compare.
    """
    if isinstance(value, dict):
        return {name: thinned(child) for name, child in value.items()}
    if not isinstance(value, list):
        return value
    if len(value) > LONG:
        step, shapes = len(value) // LONG + 1, {}
        for i, child in enumerate(value):
            shapes.setdefault(shape(child), i)
        value = [value[i] for i in sorted({*shapes.values(), *range(0, len(value), step)})]
    return [thinned(child) for child in value]


def check(doc):
    """Raises Undocumented if the document is not what its schema says. Of many alike, the first are compared."""
    with ONE_AT_A_TIME:
        like = doc['schema'], shape(doc)
        SEEN[like] = SEEN.get(like, 0) + 1
        if SEEN[like] <= LONG:
            check_alone(thinned(doc))


def check_alone(doc):
    name = doc['schema'].removeprefix('ramseal-')
    if next(iter(doc)) != 'schema':
        raise Undocumented(f'{name}: "schema" is not the first member')
    v = validator(name)
    for error in v.iter_errors(doc):
        where = ''.join(f'.{p}' if isinstance(p, str) else f'[{p}]' for p in error.absolute_path)
        raise Undocumented(f'{name}: ${where}: {error.message[:1000]}')
    for path in undocumented([(v, v.schema)], doc):
        raise Undocumented(f'{name}: {path} is not in the schema')
