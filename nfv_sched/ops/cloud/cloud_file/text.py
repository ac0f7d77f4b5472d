# SPDX-License-Identifier: Apache-2.0
"""Read and parse the text of a cloud file, with the line of each field."""

import dataclasses
import pathlib
import re
import typing as ty
import zlib

import yaml

from nfv_sched.base import files
from nfv_sched.ops.cloud.cloud_file import model
from nfv_sched.ops.cloud import problems

_MERGE = 'tag:yaml.org,2002:merge'
_HALVES = re.compile('[\ud800-\udfff]')
_NUMBERS = ('tag:yaml.org,2002:int', 'tag:yaml.org,2002:float')
_KEYS = {field.name for field in dataclasses.fields(model.CloudFile)}
_KEY = re.compile(rb'^["\']?([a-z_]+)["\']? *:', re.MULTILINE)
# Errors of PyYAML for a scalar or list that does not match its tag.
_MISFITS = (ValueError, TypeError, KeyError, IndexError, AttributeError,
            OverflowError)


def read(path: str) -> str:
    """Read a file; raise InputError if unreadable, too long or not UTF-8."""
    try:
        if pathlib.Path(path).is_dir():
            raise problems.InputError([f'{path}: is a directory, not a file'])
        raw = files.read(path)
    except (OSError, ValueError, EOFError, zlib.error) as e:
        raise problems.InputError([
            f'{path}: {getattr(e, "strerror", None) or e}'])
    try:
        return raw.decode('utf-8-sig')
    except UnicodeDecodeError as e:
        line = raw.count(b'\n', 0, e.start) + 1
        raise problems.InputError([f'{path}:{line}: not UTF-8 text'])


def is_cloud_file(path: str) -> bool:
    """Return whether a file may be meant as one; also if it is unreadable."""
    try:
        raw = files.read(path)
    except (OSError, ValueError, EOFError, zlib.error):
        return True
    return not raw.strip() or any(
        key.decode() in _KEYS for key in _KEY.findall(raw))


class _MarkedLoader(yaml.SafeLoader):
    """A safe YAML loader with line numbers and the size limits of files.

    It refuses duplicate keys.  The content of an alias or merge key counts
    each time that it is used.
    """

    def __init__(self, text: str):
        super().__init__(text)
        self._items_left = files.max_yaml_items()
        self._depth = 0

    def marked(self, marks: dict[problems.Path, int]) -> ty.Any:
        """Load the document; ``marks`` gets the line of each field's path."""
        if (node := self.get_single_node()) is None:
            return None
        # Composing has counted each node once; building counts aliases, too.
        self._items_left = files.max_yaml_items()
        return self._build(node, (), marks, ())

    def compose_node(self, parent, index):
        self._count(1)
        self._depth += 1
        if self._depth > files.MAX_DEPTH:
            raise files.FileLimitError(
                f'nested too deeply: more than {files.MAX_DEPTH} levels')
        node = super().compose_node(parent, index)
        self._depth -= 1
        # A surrogate, which only an escape can make, cannot be encoded.
        if isinstance(node, yaml.ScalarNode) and _HALVES.search(node.value):
            raise _error('a text with half of a character', node)
        return node

    def _count(self, items: int) -> None:
        self._items_left -= items
        if self._items_left < 0:
            raise files.beyond(f'{files.max_yaml_items()} items, with those '
                               'of aliases and merge keys')

    def _build(self, node, path, marks, above):
        self._count(1)
        marks.setdefault(path, node.start_mark.line + 1)
        above = _with(node, above)
        if len(above) > files.MAX_DEPTH:
            raise files.FileLimitError(
                f'nested too deeply: more than {files.MAX_DEPTH} levels')
        if isinstance(node, yaml.SequenceNode):
            return [self._build(item, (*path, i), marks, above)
                    for i, item in enumerate(node.value)]
        if not isinstance(node, yaml.MappingNode):
            return self._scalar(node)
        result = {}
        for key, (key_node, value_node) in self._pairs(node, ()).items():
            marks[(*path, key)] = key_node.start_mark.line + 1
            result[key] = self._build(value_node, (*path, key), marks, above)
        return result

    def _pairs(self, node, above):
        """Return (node of key, node of value) by key, for a mapping."""
        above = _with(node, above)
        own = {}
        merged = {}
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                merged.update(self._merge_pairs(value_node, above))
                continue
            # Keys are strings, even where YAML would read a number.
            if not isinstance(key_node, yaml.ScalarNode):
                raise _error('a key that is not a plain name', key_node)
            if key_node.value in own:
                raise _error(f'the key {_excerpt(key_node.value)} is given '
                             'twice', key_node)
            own[key_node.value] = key_node, value_node
        self._count(1 + len(own) + len(merged))
        return {**merged, **own}

    def _merge_pairs(self, node, above):
        """Return the pairs of a merge key; in a list, the first one wins."""
        if isinstance(node, yaml.MappingNode):
            return self._pairs(node, above)
        if isinstance(node, yaml.SequenceNode) and all(
                isinstance(each, yaml.MappingNode) for each in node.value):
            pairs = {}
            for each in reversed(node.value):
                pairs.update(self._pairs(each, above))
            return pairs
        raise _error(
            'expected a mapping or list of mappings for merging', node)

    def _scalar(self, node):
        if len(node.value) > files.MAX_TEXT:
            raise files.FileLimitError(
                f'has a text of more than {files.MAX_TEXT} characters')
        if node.tag in _NUMBERS and len(node.value) > files.MAX_DIGITS:
            raise _error(
                f'a number of more than {files.MAX_DIGITS} digits', node)
        try:
            return self.construct_object(node, deep=True)
        except _MISFITS:
            raise _error(f'{_excerpt(node.value)} is not of the type '
                         f'{_excerpt(node.tag)}', node) from None


def _with(node: yaml.Node, above: tuple) -> tuple:
    if node in above:
        raise _error('an alias that contains itself', node)
    return (*above, node)


def _error(problem: str, node: yaml.Node) -> yaml.YAMLError:
    return yaml.constructor.ConstructorError(
        None, None, problem, node.start_mark)


def _excerpt(text: str) -> str:
    return repr(text if len(text) <= 60 else f'{text[:57]}...')


def parse(text: str, path: str) -> tuple[ty.Any, dict[problems.Path, int]]:
    """Parse YAML; return the document, and path of each field -> its line."""
    marks: dict[problems.Path, int] = {}
    where = path
    try:
        if len(text) > files.max_yaml_size():
            raise files.beyond(f'{files.max_yaml_size()} characters')
        loader = _MarkedLoader(text)
        try:
            return loader.marked(marks), marks
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as e:
        mark = e.problem_mark or e.context_mark
        where += f':{mark.line + 1 if mark else 1}'
        problem = ' '.join(str(e.problem or e.context).split())
        problem = f'not valid YAML: {problem}'
    except yaml.reader.ReaderError as e:
        line = text.count('\n', 0, e.position) + 1
        where += f':{line}'
        problem = (f'not text: the character #x{e.character:04x} is not '
                   'allowed in YAML')
    except files.FileLimitError as e:
        problem = str(e)
    except (yaml.YAMLError, ValueError, OverflowError) as e:
        problem = f'not valid YAML: {" ".join(str(e).split())}'
    except RecursionError:
        problem = 'nested too deeply'
    raise problems.InputError([f'{where}: {problem}'])
