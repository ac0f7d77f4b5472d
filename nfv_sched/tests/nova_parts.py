# SPDX-License-Identifier: Apache-2.0
"""Find the private parts of Nova that the product uses.

Out-of-tree code may rely on ``nova.conf``, ``nova.exception``,
``nova.objects`` and the base classes in ``nova.scheduler.filters`` and
``nova.scheduler.weights``.  What else is used is found in the source: names
that are imported, their attributes, strings that name attributes of a module
or class that is handed on, and what a subclass inherits or overrides.  Of
objects, only private attributes of the classes that a module names are found;
the rest is taken from ``nfv_sched.nova.interfaces``.

``tools/nova-parts`` writes the results, with the releases of Nova that have
each part, into the documentation.
"""

import ast
from collections.abc import Iterable, Iterator
import csv
import importlib
import json
import pathlib
import subprocess
import types

import nfv_sched
from nfv_sched.nova import features
from nfv_sched.nova import interfaces

ROOT = pathlib.Path(nfv_sched.__file__).parents[1]
TABLE = ROOT / 'doc' / 'source' / 'contributor' / 'nova-parts.csv'

_HEADER = ('Part of Nova', 'Used in', 'In Nova')
_LATER = ' and later'
_PACKAGE = 'nfv_sched'
#: What is stable by itself, and with all that is in it.
_MODULES = ('nova.scheduler.filters', 'nova.scheduler.weights')
_STABLE = (
    'nova.conf', 'nova.exception', 'nova.objects',
    *(f'nova.scheduler.filters.{name}' for name in (
        'BaseHostFilter', 'HostFilterHandler', 'all_filters')),
    *(f'nova.scheduler.weights.{name}' for name in (
        'BaseHostWeigher', 'HostWeightHandler', 'WeighedHost',
        'all_weighers')))

# Writes which of the names in a JSON list exist, and the version of Nova.
_LOOK = '''
import importlib.metadata, json, sys, warnings
warnings.simplefilter('ignore')
sys.path.insert(0, {root!r})
from nfv_sched.tests import nova_parts
names = json.load(sys.stdin)
print(json.dumps([importlib.metadata.version('nova'),
                  [name for name in names if nova_parts.exists(name)]]))
'''


def resolve(name: str) -> tuple[object, str]:
    """Return what a full name leads to, and the part of it that was found.

    The way ends at the first thing that is not a module or a class.
    """
    parts = name.split('.')
    value: object = importlib.import_module(parts[0])
    for number, part in enumerate(parts[1:], 1):
        path = '.'.join(parts[:number])
        if not isinstance(value, (types.ModuleType, type)):
            return value, path
        if isinstance(value, types.ModuleType) and not hasattr(value, part):
            try:
                importlib.import_module(f'{path}.{part}')
            except ImportError:
                return value, path
        if not hasattr(value, part):
            return value, path
        value = getattr(value, part)
    return value, name


def exists(name: str) -> bool:
    """Return whether the installed Nova has something of this full name."""
    return resolve(name)[1] == name


def is_stable(name: str) -> bool:
    """Return whether out-of-tree code may rely on something of Nova."""
    return name in _MODULES or f'{name}.'.startswith(
        tuple(f'{each}.' for each in _STABLE))


class _Names(ast.NodeVisitor):
    """Collects the names of Nova that the source of a module uses.

    :ivar exports: names at the top of the module -> full names of Nova
    """

    def __init__(self, exports: dict[str, dict[str, str]]):
        self._exports = exports
        self._full: dict[str, str] = {}
        self._strings: set[str] = set()
        self._values: set[str] = set()
        self._attributes: set[str] = set()
        self._classes: list[tuple[str, set[str]]] = []
        self.exports: dict[str, str] = {}
        self.names: set[str] = set()

    def look(self, source: ast.Module) -> None:
        self._import(source)
        for node in source.body:
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                name = self._name(node.value)
                if name and isinstance(node.targets[0], ast.Name):
                    self.exports[node.targets[0].id] = name
        self._full.update(self.exports)
        self.visit(source)
        for value in self._values:
            for string in self._strings:
                if exists(f'{value}.{string}'):
                    self.names.add(f'{value}.{string}')
        for name in list(self.names):
            owner = resolve(name)[0]
            if isinstance(owner, type) and exists(name):
                self.names.update(f'{name}.{attribute}'
                                  for attribute in self._attributes
                                  if hasattr(owner, attribute))
        for base, used in self._classes:
            owner = resolve(base)[0]
            if isinstance(owner, type):
                self.names.update(
                    f'{base}.{name}' for name in used
                    if hasattr(owner, name) and not hasattr(object, name))

    def _import(self, node: ast.AST) -> None:
        """Note what is imported in a module or function, not in functions."""
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                for alias in child.names:
                    if alias.name.startswith('nova.'):
                        self.names.add(alias.name)
                    if alias.asname:
                        self._full[alias.asname] = alias.name
                    else:
                        root = alias.name.partition('.')[0]
                        self._full[root] = root
            elif isinstance(child, ast.ImportFrom):
                for alias in child.names:
                    self._full[alias.asname or alias.name] = (
                        f'{child.module}.{alias.name}')
            elif not isinstance(child, ast.FunctionDef):
                self._import(child)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        outside = dict(self._full)
        self._import(node)
        self.generic_visit(node)
        self._full = outside

    def _name(self, node: ast.AST) -> str | None:
        """Return the full name in Nova of an expression, if it has one."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.insert(0, node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self._full:
            return None
        root = self._full[node.id]
        if root.startswith(f'{_PACKAGE}.') and parts:
            root = self._exports.get(root, {}).get(parts.pop(0), '')
        name = '.'.join((root, *parts))
        return name if f'{name}.'.startswith('nova.') else None

    def visit_Attribute(self, node: ast.Attribute) -> None:
        name = self._name(node)
        if name:
            self.names.add(name)
            return
        if node.attr.startswith('_') and not node.attr.startswith('__'):
            self._attributes.add(node.attr)
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        name = self._name(node)
        if name and isinstance(node.ctx, ast.Load):
            self._values.add(name)
            self.names.add(name)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and (
                node.value.isidentifier() and node.value.strip('_')):
            self._strings.add(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        # The only mention of what newer releases of Nova do not have.
        if (isinstance(node.func, ast.Name)
                and node.func.id in ('getattr', 'hasattr')):
            name = self._name(node.args[0])
            last = node.args[1]
            if name and isinstance(last, ast.Constant):
                self.names.add(f'{name}.{last.value}')
        self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        used = {each.name for each in node.body
                if isinstance(each, ast.FunctionDef)}
        for each in ast.walk(node):
            if isinstance(each, ast.Attribute) and (
                    isinstance(each.value, ast.Name)
                    and each.value.id in ('self', 'cls')
                    or isinstance(each.value, ast.Call)
                    and isinstance(each.value.func, ast.Name)
                    and each.value.func.id == 'super'):
                used.add(each.attr)
        self._classes += [(name, used) for name in map(self._name, node.bases)
                          if name]
        self.generic_visit(node)


def _sources(root: pathlib.Path) -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(root.rglob('*.py')):
        name = path.relative_to(root).as_posix()
        if not name.startswith('tests/'):
            yield name, ast.parse(path.read_text())


def used_parts(
        root: pathlib.Path = ROOT / _PACKAGE) -> dict[str, list[str]]:
    """Return the private parts of Nova, each with the modules that use it."""
    exports: dict[str, dict[str, str]] = {}
    parts: dict[str, list[str]] = {}
    sources = list(_sources(root))
    for last in (False, True):
        for path, source in sources:
            names = _Names(exports)
            names.look(source)
            module = f'{_PACKAGE}.{path.removesuffix(".py")}'
            exports[module.replace('/', '.')] = names.exports
            for name in sorted(_whole(names.names)) if last else ():
                parts.setdefault(name, []).append(path)
    parts |= {name: modules for name, modules in _listed(sources).items()
              if name not in parts}
    return dict(sorted(parts.items()))


def _listed(
        sources: Iterable[tuple[str, ast.Module]]) -> dict[str, list[str]]:
    """Return the private parts that the product checks, with the modules.

    The modules are those that have the last part of the name as an attribute
    or a string.
    """
    mentioned = {path: {getattr(node, 'attr', getattr(node, 'value', None))
                        for node in ast.walk(source)
                        if isinstance(node, ast.Attribute) or (
                            isinstance(node, ast.Constant)
                            and isinstance(node.value, str))}
                 for path, source in sources}
    names = _whole(
        _own_name(f'{item.module}.{name}') for item in interfaces.INTERFACES
        if item.module.startswith('nova.') for name in item.name.split('|'))
    return {name: [path for path, words in mentioned.items()
                   if name.rpartition('.')[2] in words] for name in names}


def _own_name(name: str) -> str:
    """Return a name by the module in which it is, not one that imports it."""
    value: object = None
    path = ''
    for part in name.split('.'):
        path = f'{path}.{part}'.lstrip('.')
        value = resolve(path)[0]
        if isinstance(value, types.ModuleType) and exists(path):
            path = value.__name__
    return path


def _whole(names: Iterable[str]) -> set[str]:
    """Return private names, without what is behind functions and objects.

    Modules are left out of which something is named.
    """
    shown = set()
    for name in names:
        value, path = resolve(name)
        if isinstance(value, (types.ModuleType, type)) and path != name:
            # Not in this release of Nova.
            path = '.'.join(name.split('.')[:path.count('.') + 2])
        path = path.partition('.__')[0]
        if not is_stable(path):
            shown.add(path)
    return {name for name in shown if not (
        isinstance(resolve(name)[0], types.ModuleType) and exists(name)
        and any(other.startswith(f'{name}.') for other in shown))}


def look_into(python: str, names: Iterable[str]) -> tuple[int, set[str]]:
    """Look which names the Nova of a Python environment has.

    :returns: major version of Nova, and the names
    """
    done = subprocess.run(
        [python, '-c', _LOOK.format(root=str(ROOT))],
        input=json.dumps(list(names)), stdout=subprocess.PIPE, text=True,
        check=True)
    version, present = json.loads(done.stdout.splitlines()[-1])
    return int(version.partition('.')[0]), set(present)


def _text(releases: Iterable[int]) -> str:
    first = min(releases)
    if set(releases) == {each for each in features.RELEASES if each >= first}:
        return f'{first}{_LATER}'
    return ', '.join(map(str, sorted(releases)))


def _of_text(text: str) -> list[int]:
    if text.endswith(_LATER):
        first = int(text.removesuffix(_LATER))
        return [each for each in features.RELEASES if each >= first]
    return list(map(int, text.split(', ')))


def read() -> dict[str, tuple[list[str], frozenset[int]]]:
    """Return the table: names, with modules, and the releases of Nova."""
    table = {}
    with TABLE.open(newline='') as file:
        rows = csv.reader(file)
        next(rows)
        for name, modules, releases in rows:
            table[name.strip('`')] = (
                modules.replace('`', '').split(', '),
                frozenset(_of_text(releases)))
    return table


def write(table: dict[str, tuple[list[str], frozenset[int]]]) -> None:
    with TABLE.open('w', newline='') as file:
        rows = csv.writer(file, lineterminator='\n')
        rows.writerow(_HEADER)
        for name, (modules, releases) in table.items():
            rows.writerow((
                f'``{name}``', ', '.join(f'``{each}``' for each in modules),
                _text(releases)))
