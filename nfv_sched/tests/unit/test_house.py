# SPDX-License-Identifier: Apache-2.0
"""How the modules stand to each other, and the tests to the modules.

What is read is the source; nothing is imported.
"""

import ast
from collections.abc import Iterable, Iterator
import configparser
import functools
from importlib import metadata
import itertools
import pathlib
import re
import subprocess
import sys

import fixtures

from nfv_sched.ops.cli import main
from nfv_sched.tests import base

ROOT = pathlib.Path(base.__file__).parent.parent

#: Folders in which each module has a test module of its name.
TESTED = ('filters', 'fit/numa', 'fit/rules', 'weights')
#: What is in these has one in folder of tests, if it is more than a base.
OPTIONAL = ('__init__', 'base')

#: The rooms. Each imports only what is before it, in functions, too.
ROOMS = (
    'base', 'nova', 'journal', 'limits', 'ledger', 'fit', 'scheduler',
    'filters', 'weights', 'checks', 'cmd',
    'ops/cli', 'ops/run', 'ops/cloud', 'ops/simulator', 'ops/model',
    'ops/answers', 'ops/commands', 'ops/serve')
#: What must not grow: a change that makes it less lowers it here, too.
#: Mirrored types share 70 % of the names of their fields, and say nowhere that
#: one is the border to something.
MOST = {
    'floors': 10, 'arrows': 94, 'mirrored types': 0, 'renamed imports': 272,
    'lines': 63_000, 'lines of tests': 78_000, 'modules loaded': 84,
    'lines loaded': 13_500}
#: Names under which anything may be imported.
ALIASES = ('ty', 'orc', 'sa', 'np')
#: What nova-scheduler loads.
LOADED = """
from nfv_sched import filters
from nfv_sched import weights
import sys
filters.all_filters(), weights.all_weighers()
print(*[module.__file__ for name, module in sys.modules.items()
        if name.split('.')[0] == 'nfv_sched'], sep='\\n')
"""

#: The tools: what is outside is loaded by Nova, and knows nothing of them.
TOOLS = 'ops/'
#: The strategies for OpenStack Watcher, which is not installed with the tools.
WATCHER = 'ops/serve/watcher/'

#: What is imported of Nova elsewhere than in the modules that are for that.
NOVA = ('nova.conf', 'nova.exception', 'nova.objects',
        'nova.scheduler.filters', 'nova.scheduler.weights')
ADAPTERS = ('nova/', 'ops/simulator/nova', 'tests/')

#: The model of Placement: its folder, what it consists of, and how
#: dictionaries and sets are changed.
MODEL = 'ops/simulator/placement/'
#: Has providers of its own, which it reads.
SNAPSHOT = 'ops/cloud/'
MODEL_PARTS = ('used', 'inventories', 'traits', 'aggregates', 'providers',
               'allocations')
CHANGES = ('add', 'clear', 'difference_update', 'discard',
           'intersection_update', 'pop', 'popitem', 'remove', 'setdefault',
           'symmetric_difference_update', 'update')

#: Figures of hosts that servers change, in Nova, snapshots and our own views.
USAGE = {
    'cpu_usage', 'disk_used', 'free_cpus', 'free_disk_gb', 'free_disk_mb',
    'free_ram_mb', 'local_gb_used', 'memory_mb_used', 'memory_usage',
    'memory_used', 'num_instances', 'pinned', 'pinned_cpus', 'running_vms',
    'shared_used', 'vcpus_used'}
#: Modules that may work them out.
OCCUPANCY = [
    'fit/occupancy.py',
    'ops/cloud/occupied.py',
    'ops/simulator/compute.py',  # of new compute nodes
]
#: Modules that read the thread policy of servers, which decides what CPUs they
#: block: the occupancy, and the way from a snapshot to Nova's objects.
THREAD_POLICY = ['ops/cloud/occupied.py', 'ops/simulator/start.py']
#: Modules that read limits of ports and rules: their options, the one decision
#: and what is free, and the check of the options.
LIMITS = ('limits/options.py', 'limits/decide.py', 'checks/scheduler.py')
#: What is free -> what it is worked out from.
FREE = {('total', 'used'), ('dedicated', 'pinned'), ('pcpuset', 'pinned_cpus')}

#: The package that reads cloud files, and who uses it. The simulator does not:
#: for it, they are a snapshot and steps.
CLOUD_FILE = 'ops/cloud/cloud_file/'
CLOUD_FILE_USERS = ('ops/answers/simulation/', 'ops/commands/',
                    'ops/answers/machine/read.py')  # YAML within limits
#: Parts of texts and names that are the package's own.
CLOUD_FILE_WORDS = re.compile(r'HostGroup|\brules\)')

#: Classes of tests that run as long as they like.
UNTIMED = ('testtools.TestCase', 'unittest.TestCase', 'TestCase')
#: Tests that are not bound by them, or whose services are.
OWN_BOUNDS = ('tests/base.py', 'tests/live/', 'tests/watcher/')

#: Requirements that no module of the product imports: pbr makes the version.
UNIMPORTED = {'pbr'}

#: Begins the names of the commands of ``openstack``.
PLUGIN_PREFIX = 'nfv_'

#: Private names of others, such as Nova and its fixtures, that are also ours.
FOREIGN = {
    'tests/functional/base.py': {'_host'},
    'tests/functional/network.py': {
        '_networks', '_ports', '_security_groups'},
    'tests/functional/test_concurrency.py': {'_select_destinations'},
    'tests/functional/test_network_limits.py': {'_networks'},
}

#: What is asked of a placement rule only to decide about a host.
QUESTIONS = (
    'cpu_ratio', 'cpu_ratio_reason', 'missing_reason', 'narrow',
    'unsuitable_reason', 'violation_reason')
#: The modules that decide.
DECIDING = ('fit/decide.py', 'fit/numa/decide.py')

_PRIVATE = re.compile(r'_[a-zA-Z]\w*')
_PRIVATE_PATH = re.compile(r'nfv_sched(\.\w+)*\.(_[a-zA-Z]\w*)')
_OWN = ('self', 'cls')


@functools.cache
def tree(path: pathlib.Path) -> ast.Module:
    return ast.parse(path.read_text())


def modules(root: pathlib.Path, folder: str = '') -> list[tuple[str, ast.AST]]:
    return [(path.relative_to(root).as_posix(), tree(path))
            for path in sorted((root / folder).rglob('*.py'))]


def imported(source: ast.AST) -> Iterator[str]:
    for node in ast.walk(source):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f'{node.module}.{alias.name}' for alias in node.names)


def is_below(name: str, packages) -> bool:
    return any(f'{name}.'.startswith(f'{package}.') for package in packages)


def untested(root: pathlib.Path) -> list[str]:
    return [
        path.relative_to(root).as_posix() for folder in TESTED
        for path in sorted((root / folder).glob('*.py'))
        if path.stem not in OPTIONAL and not (
            root / 'tests' / 'unit' / folder / f'test_{path.name}').exists()]


def imports_of_tools(root: pathlib.Path) -> list[str]:
    return [f'{path}: {name}' for path, source in modules(root)
            if not path.startswith((TOOLS, 'tests/'))
            for name in imported(source)
            if is_below(name, ['nfv_sched.ops'])]


def room(path: str) -> str:
    """The room of a module: its folder; of the tools the folder in theirs.

    A module that is in no folder is a room of its own.
    """
    parts = path.removesuffix('.py').split('/')
    return '/'.join(parts[:2 if parts[0] == 'ops' else 1])


def used_rooms(root: pathlib.Path) -> dict[str, set[str]]:
    """Room -> the rooms that its modules import, wherever they do."""
    found = [(path, source) for path, source in modules(root)
             if not path.startswith('tests/')
             and path not in ('__init__.py', 'ops/__init__.py')]
    known = {str(each) for path, _source in found for each in (
        pathlib.PurePath(path).with_suffix(''),
        *pathlib.PurePath(path).parents)}
    rooms: dict[str, set[str]] = {}
    for path, source in found:
        used = rooms.setdefault(room(path), set())
        for name in imported(source):
            if not is_below(name, ['nfv_sched']):
                continue
            parts = name.split('.')[1:]
            # The module, or the folder, that a name is of.
            while parts and '/'.join(parts) not in known:
                parts.pop()
            if parts:
                used.add(room('/'.join(parts)))
        used.discard(room(path))
    return rooms


def upward(root: pathlib.Path) -> list[str]:
    """Imports of rooms that are not before the one that imports them."""
    return [f'{importing} imports {used}'
            for importing, all_used in used_rooms(root).items()
            for used in sorted(all_used)
            if used not in ROOMS[:ROOMS.index(importing)]]


def floors(root: pathlib.Path) -> int:
    """The number of rooms of which each imports the next."""
    used = used_rooms(root)

    @functools.cache
    def floor(name: str) -> int:
        return 1 + max(map(floor, used[name]), default=0)
    return max(map(floor, used))


def mirrored(root: pathlib.Path) -> list[tuple[str, str]]:
    """Pairs of classes whose fields have mostly the same names."""
    fields = {}
    for path, source in modules(root):
        for node in ast.walk(source):
            if path.startswith('tests/') or not isinstance(
                    node, ast.ClassDef) or 'border to' in (
                        ast.get_docstring(node) or '').lower():
                continue
            names = {each.target.id for each in node.body
                     if isinstance(each, ast.AnnAssign)
                     and isinstance(each.target, ast.Name)}
            if len(names) > 3:
                fields[f'{path}: {node.name}'] = names
    return [(one, two) for one, two in itertools.combinations(fields, 2)
            if len(fields[one] & fields[two])
            >= 0.7 * len(fields[one] | fields[two])]


def renamed(root: pathlib.Path) -> int:
    return sum(
        alias.asname not in (None, alias.name, *ALIASES)
        for path, source in modules(root) if not path.startswith('tests/')
        for node in ast.walk(source)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names)


def lines(paths: Iterable[pathlib.Path]) -> int:
    return sum(len(path.read_text().splitlines()) for path in paths)


def loaded() -> list[pathlib.Path]:
    """The modules of a scheduler with all filters and weighers."""
    return list(map(pathlib.Path, subprocess.run(
        [sys.executable, '-W', 'ignore', '-c', LOADED], check=True,
        capture_output=True, text=True).stdout.split()))


def figures(root: pathlib.Path) -> dict[str, int]:
    """What :data:`MOST` bounds."""
    of_scheduler = loaded()
    tests = set((root / 'tests').rglob('*.py'))
    return {
        'floors': floors(root),
        'arrows': sum(map(len, used_rooms(root).values())),
        'mirrored types': len(mirrored(root)),
        'renamed imports': renamed(root),
        'lines': lines(set(root.rglob('*.py')) - tests),
        'lines of tests': lines(tests),
        'modules loaded': len(of_scheduler),
        'lines loaded': lines(of_scheduler)}


def deciding(root: pathlib.Path) -> set[str]:
    """Modules that ask placement rules about a host."""
    return {path for path, source in modules(root)
            if not path.startswith(('fit/rules/', 'tests/'))
            for node in ast.walk(source)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in QUESTIONS
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == 'rule'}


def cell_changes(root: pathlib.Path) -> list[str]:
    """Modules that work out the usage of a ``HostCell``."""
    return [path for path, source in modules(root)
            if not path.startswith('tests/') and any(
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == 'changed'
                and any(each.arg == 'memory_usage' for each in node.keywords)
                for node in ast.walk(source))]


def untimed(root: pathlib.Path) -> list[str]:
    """Test classes that no ``OS_TEST_TIMEOUT`` bounds."""
    return [f'{path}: {node.name}'
            for path, source in modules(root, 'tests')
            if not path.startswith(OWN_BOUNDS)
            for node in ast.walk(source) if isinstance(node, ast.ClassDef)
            and any(ast.unparse(each) in UNTIMED for each in node.bases)]


def usage_changes(root: pathlib.Path) -> list[str]:
    """Modules that work out figures of hosts that servers change."""
    return [path for path, source in modules(root)
            if not path.startswith('tests/')
            and any(map(_works_out_usage, ast.walk(source)))]


def _works_out_usage(node: ast.AST) -> bool:
    targets: list[ast.AST] = []
    if isinstance(node, ast.AugAssign):
        return getattr(node.target, 'attr', None) in USAGE
    if isinstance(node, ast.Assign):
        targets = node.targets
        names = {target.attr for target in targets
                 if isinstance(target, ast.Attribute)}
    elif isinstance(node, ast.keyword):
        names = {node.arg}
    else:
        return False
    return not names.isdisjoint(USAGE) and any(
        isinstance(each, ast.BinOp) and isinstance(
            each.op, (ast.Add, ast.Sub, ast.BitAnd, ast.BitOr))
        for each in ast.walk(node.value))


def attribute_readers(root: pathlib.Path, name: str) -> list[str]:
    return [path for path, source in modules(root)
            if not path.startswith('tests/') and any(
                isinstance(node, ast.Attribute) and node.attr == name
                and isinstance(node.ctx, ast.Load)
                for node in ast.walk(source))]


def free_figures(root: pathlib.Path) -> list[str]:
    """Modules that subtract what servers have from what there is."""
    return sorted({
        path for path, source in modules(root)
        if not path.startswith('tests/') for node in ast.walk(source)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)
        and isinstance(node.right, ast.Attribute) and any(
            (each.attr, node.right.attr) in FREE
            for each in ast.walk(node.left)
            if isinstance(each, ast.Attribute))})


def beyond_adapters(root: pathlib.Path) -> list[str]:
    """Imports of Nova's modules where they are not expected."""
    return [f'{path}: {name}' for path, source in modules(root)
            if not path.startswith(ADAPTERS)
            for name in imported(source)
            if is_below(name, ['nova']) and name not in NOVA
            and not name.startswith('nova.objects.')]


def model_changes(root: pathlib.Path) -> list[str]:
    """Where others than the model of Placement change what it consists of."""
    return [f'{path}:{line}' for path, source in modules(root, TOOLS)
            if not path.startswith((MODEL, SNAPSHOT))
            for function in ast.walk(source)
            if isinstance(function, (ast.FunctionDef, ast.Module))
            for line in changes(function)]


def changes(function: ast.AST) -> Iterator[int]:
    """Lines of a function that change a part of a model, by any name."""
    nodes = list(own_nodes(function))
    names = {target.id for node in nodes if isinstance(node, ast.Assign)
             and is_part(node.value, ()) for target in node.targets
             if isinstance(target, ast.Name)}
    for node in nodes:
        targets: list[ast.AST] = []
        if isinstance(node, (ast.Assign, ast.Delete)):
            targets = node.targets
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
            targets = [node.target]
        elif isinstance(node, ast.Call) and isinstance(
                node.func, ast.Attribute) and node.func.attr in CHANGES:
            if is_part(node.func.value, names):
                yield node.lineno
        for target in targets:
            if isinstance(target, ast.Attribute) and is_part(target, ()) or (
                    isinstance(target, ast.Subscript)
                    and is_part(target.value, names)):
                yield target.lineno


def own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """What is in a function, but for functions in it."""
    for node in ast.iter_child_nodes(function):
        yield node
        if not isinstance(node, ast.FunctionDef):
            yield from own_nodes(node)


def is_part(node: ast.AST, names) -> bool:
    """Return whether it is a part of a model of Placement, or in one."""
    if isinstance(node, ast.Subscript):
        return is_part(node.value, names)
    if isinstance(node, ast.Name):
        return node.id in names
    return isinstance(node, ast.Attribute) and (
        node.attr in MODEL_PARTS and not is_own(node)
        or is_part(node.value, names))


def cloud_file_words(root: pathlib.Path) -> list[str]:
    """Return what modules know of the vocabulary of a cloud file."""
    package = f'nfv_sched.{CLOUD_FILE[:-1].replace("/", ".")}'
    found = []
    for path, source in modules(root):
        if path.startswith(('tests/', CLOUD_FILE)):
            continue
        if not path.startswith(CLOUD_FILE_USERS):
            found += [f'{path}: {name}' for name in imported(source)
                      if is_below(name, [package])]
        for node in ast.walk(source):
            word = {ast.Name: 'id', ast.Attribute: 'attr',
                    ast.Constant: 'value'}.get(type(node))
            if word and CLOUD_FILE_WORDS.search(str(getattr(node, word))):
                found.append(f'{path}:{node.lineno}')
    return found


def entry_points(root: pathlib.Path) -> dict[str, dict[str, str]]:
    """Return group of entry points -> name -> what it is, by ``setup.cfg``."""
    config = configparser.ConfigParser()
    config.optionxform = str
    config.read(root.parent / 'setup.cfg')
    return {
        group: dict(re.split(r'\s*=\s*', line)
                    for line in text.strip().splitlines() if '=' in line)
        for group, text in config['entry_points'].items()}


def single(root: pathlib.Path) -> list[str]:
    """Commands of ``nfv-sched`` or ``openstack nfv``, not of both."""
    found = entry_points(root)
    own = {f'{PLUGIN_PREFIX}{name} = {value}'
           for name, value in found['nfv_sched.cli'].items()}
    plugin = {f'{name} = {value}'
              for name, value in found['openstack.extension'].items()}
    return sorted(own ^ plugin)


def names_of(requirements: str) -> set[str]:
    """Return the names of requirements, one a line, normalized."""
    return {re.sub(r'[-_.]+', '-', match[0]).lower() for match in (
        re.match(r'[\w.-]+', line) for line in requirements.splitlines())
        if match}


def declared(root: pathlib.Path, extra: str = '') -> set[str]:
    if not extra:
        return names_of((root / 'requirements.txt').read_text())
    config = configparser.ConfigParser()
    config.read(root / 'setup.cfg')
    return names_of(config['extras'][extra].strip())


def foreign(root: pathlib.Path, folder: str = '') -> set[str]:
    """Return the packages of others that the product imports.

    :param folder: of the importing modules; without it, those outside of the
        tools
    """
    names = {name.partition('.')[0] for path, source in modules(root, folder)
             if folder or not path.startswith((TOOLS, 'tests/'))
             if folder == WATCHER or not path.startswith(WATCHER)
             for name in imported(source)}
    return names - {*sys.stdlib_module_names, 'nfv_sched'}


def libraries(names: set[str]) -> set[str]:
    providers = metadata.packages_distributions()
    return {re.sub(r'[-_.]+', '-', providers[name][0]).lower()
            for name in names}


def defined(source: ast.AST) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(source):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and is_own(node) and isinstance(
                node.ctx, ast.Store):
            names.add(node.attr)
        elif isinstance(node, ast.Assign) and any(
                isinstance(target, ast.Name) and target.id == '__slots__'
                for target in node.targets):
            names.update(ast.literal_eval(node.value))
    return {name for name in names if _PRIVATE.fullmatch(name)}


def is_own(node: ast.Attribute) -> bool:
    """Whether it is an attribute of the object that is at work."""
    value = node.value
    if isinstance(value, ast.Call):
        value = value.func
        return isinstance(value, ast.Name) and value.id == 'super'
    return isinstance(value, ast.Name) and value.id in _OWN


def used(source: ast.AST) -> Iterator[tuple[int, str]]:
    """Private names of other objects that a module uses, with lines.

    As attributes, and as names that are given to somebody who replaces them.
    """
    for node in ast.walk(source):
        if isinstance(node, ast.Attribute) and not is_own(node):
            if _PRIVATE.fullmatch(node.attr):
                yield node.lineno, node.attr
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if _PRIVATE.fullmatch(alias.name):
                    yield node.lineno, alias.name
        elif isinstance(node, ast.Call):
            for argument in node.args:
                if isinstance(argument, ast.Constant) and isinstance(
                        argument.value, str):
                    path = _PRIVATE_PATH.fullmatch(argument.value)
                    if path:
                        yield node.lineno, path[2]
                    elif _PRIVATE.fullmatch(argument.value):
                        yield node.lineno, argument.value


def doubled_classes(root: pathlib.Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path, source in modules(root):
        if not path.startswith('tests/'):
            for node in ast.walk(source):
                if isinstance(node, ast.ClassDef):
                    found.setdefault(node.name, []).append(path)
    return {name: paths for name, paths in found.items() if len(paths) > 1}


def private_uses(root: pathlib.Path) -> dict[str, dict[str, int]]:
    """Return path -> private name of another module -> line, in tests."""
    own = {path: defined(source) for path, source in modules(root)}
    found: dict[str, dict[str, int]] = {}
    for path, source in modules(root):
        if path.startswith('tests/'):
            others = set().union(*(
                names for other, names in own.items() if other != path))
            for line, name in used(source):
                if name in others - own[path]:
                    found.setdefault(path, {})[name] = line
    return found


class HouseTest(base.TestCase):

    def test_each_module_has_its_tests(self):
        self.assertEqual([], untested(ROOT))

    def test_rooms_import_what_is_below(self):
        self.assertEqual(set(ROOMS), used_rooms(ROOT).keys())
        self.assertEqual([], upward(ROOT))

    def test_the_plugin_does_without_the_tools(self):
        self.assertEqual([], imports_of_tools(ROOT))

    def test_only_the_model_of_placement_changes_it(self):
        """Others have ``take`` and ``give``."""
        self.assertEqual([], model_changes(ROOT))

    def test_less(self):
        self.assertEqual({}, {
            name: figure for name, figure in figures(ROOT).items()
            if figure > MOST[name]}, MOST)

    def test_no_test_runs_for_ever(self):
        self.assertEqual([], untimed(ROOT))

    def test_one_place_decides(self):
        self.assertEqual(set(DECIDING), deciding(ROOT))

    def test_only_the_occupancy_module_changes_host_cells(self):
        self.assertEqual(['fit/occupancy.py'], cell_changes(ROOT))

    def test_occupancy_is_worked_out_once(self):
        """What servers take of a host, and what is free of a record."""
        self.assertEqual(OCCUPANCY, usage_changes(ROOT))
        self.assertEqual(['ops/cloud/snapshot.py'], free_figures(ROOT))
        self.assertEqual(THREAD_POLICY,
                         attribute_readers(ROOT, 'thread_policy'))

    def test_limits_are_decided_about_once(self):
        """And only there it is worked out what is free of them."""
        for name in ('vswitch_ports_per_node', 'vswitch_physical_ports',
                     'security_rules_per_node'):
            self.assertIn('limits/decide.py', attribute_readers(ROOT, name))
            self.assertLessEqual(
                set(attribute_readers(ROOT, name)), set(LIMITS))

    def test_what_is_imported_of_nova(self):
        """What Nova may change is behind an adapter."""
        self.assertEqual([], beyond_adapters(ROOT))

    def test_words_of_a_cloud_file(self):
        """A cloud file is a snapshot and steps for all who do not read it."""
        self.assertEqual([], cloud_file_words(ROOT))

    def test_what_the_numa_filters_do_without(self):
        """They work without Neutron's client and libraries of the tools."""
        code = ('import sys; import nfv_sched.filters.nfv_topology, '
                'nfv_sched.weights.shared_vcpu; '
                'print({"openstack", "pydantic", "nfv_sched.ops"}'
                '.intersection(sys.modules))')
        self.assertEqual('set()', subprocess.run(
            [sys.executable, '-W', 'ignore', '-c', code], check=True,
            capture_output=True, text=True).stdout.strip())

    def test_commands(self):
        """Each is one of nfv-sched, and one of openstack."""
        self.assertEqual([], single(ROOT))

    def test_requirements(self):
        """Each library that the product imports is declared, and no other."""
        plugin = declared(ROOT.parent)
        self.assertEqual(plugin, libraries(foreign(ROOT)) | UNIMPORTED)
        tools = libraries(foreign(ROOT, TOOLS)) - plugin
        self.assertEqual(declared(ROOT.parent, 'ops'), tools | {'pymysql'})
        # What the command looks for before it imports them.
        self.assertEqual(tools, libraries(set(main.MODULES)))
        strategies = foreign(ROOT, WATCHER)
        self.assertNotIn('nova', strategies)
        self.assertEqual(
            declared(ROOT.parent, 'watcher'), {'python-watcher'} | (
                libraries(strategies - {'watcher'}) - plugin))

    def test_class_names(self):
        self.assertEqual({}, doubled_classes(ROOT))

    def test_private_names(self):
        """Tests use what everybody may use."""
        found = private_uses(ROOT)
        self.assertEqual([], [
            f'{path}:{line}: {name}' for path, names in found.items()
            for name, line in names.items()
            if name not in FOREIGN.get(path, ())])
        # What is not used any more is to be taken out above.
        self.assertEqual([], [
            f'{path}: {name}' for path, names in FOREIGN.items()
            for name in names - set(found.get(path, ()))])


class ChecksTest(base.TestCase):
    """The checks see what is wrong, and nothing else."""

    #: Check, path of a module, what is wrong there and what is not; the other
    #: path is of a module in which it is not wrong either.
    CASES = (
        (imports_of_tools, 'fit__odd', 'tests__odd', (
            'from nfv_sched.ops.commands import audit',
            'def late():\n    from nfv_sched.ops.cli import atomic_file'),
         ('from nfv_sched import opsworks',)),
        (model_changes, 'ops__audit__odd', 'ops__simulator__placement__odd', (
            'del provider.used[name]', 'provider.aggregates |= names',
            'state.placement.allocations[one][two] = amounts',
            'self.model.providers[uuid].used.update(amounts)',
            'def late(provider):\n    used = provider.used\n'
            '    used[name] = 1'),
         ('used = dict(provider.used)\nused[name] = 1', 'self.used = {}',
          'amounts[provider.used] = 1', 'Provider(used={}, traits=set())',
          'def one():\n    used = provider.used\n'
          'def two():\n    used = {}\n    used[name] = 1')),
        (beyond_adapters, 'filters__odd', 'nova__odd', (
            'import nova', 'from nova.virt.hardware import VirtCPUTopology',
            'def late():\n    from nova.pci import stats'),
         ('from nova import objects', 'import novaclient',
          'from nova.objects import fields')),
        (cloud_file_words, 'ops__audit__odd', 'ops__cloud__cloud_file__odd', (
            'from nfv_sched.ops.cloud.cloud_file import model',
            'host: model.HostGroup', "name = f'({count} rules)'"),
         ("text = '5 rules'",)),
        (usage_changes, 'one', 'tests__one', (
            'node.memory_mb_used += flavor.memory_mb',
            'state.free_ram_mb = state.free_ram_mb - memory',
            'Node(pinned=node.pinned | cpus)'),
         ('Host(vcpus_used=row.vcpus_used)', 'node.memory = 1 + 2')),
        (free_figures, 'one', 'tests__one', (
            'max(pages.total - pages.reserved - pages.used, 0)',
            '(mine & node.dedicated) - node.pinned'),
         ('pages.total - pages.reserved', 'usage.pages - pages.used')),
        (untimed, 'tests__odd', 'tests__live__odd',
         ('class OddTest(testtools.TestCase):\n    pass',),
         ('class OddTest(base.TestCase):\n    pass',)),
    )

    def root(self, **files):
        """Modules by path, with ``__`` for a slash, and their source."""
        root = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        for name, source in files.items():
            path = root / f'{name.replace("__", "/")}.py'
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source)
        return root

    def test_cases(self):
        for check, path, elsewhere, wrong, right in self.CASES:
            for text in wrong:
                self.assertTrue(check(self.root(**{path: text})), text)
                self.assertFalse(check(self.root(**{elsewhere: text})), text)
            for text in right:
                self.assertFalse(check(self.root(**{path: text})), text)

    def test_requirements(self):
        root = self.root(
            cmd__one='import re\nfrom nfv_sched.base import strings\n'
                     'def run():\n    import yaml\n',
            ops__three='import rich.table\n',
            ops__serve__watcher__four='import watcher.objects\n',
            tests__two='import fixtures\n')
        (root / 'requirements.txt').write_text(
            '# Comment\nPyYAML>=6.0 # MIT\noslo.service[threading]>=4.5\n')
        (root / 'setup.cfg').write_text('[extras]\nops =\n  rich>=13 # MIT\n')
        self.assertEqual(
            ({'yaml'}, {'rich'}, {'watcher'}),
            (foreign(root), foreign(root, TOOLS), foreign(root, WATCHER)))
        self.assertEqual({'pyyaml', 'rich'}, libraries({'yaml', 'rich'}))
        self.assertEqual({'pyyaml', 'oslo-service'}, declared(root))
        self.assertEqual({'rich'}, declared(root, 'ops'))

    def test_upward(self):
        for text in ('from nfv_sched import filters',
                     'if ty.TYPE_CHECKING:\n'
                     '    from nfv_sched.filters.base import NFVHostFilter'):
            root = self.root(fit__odd=text, filters__base='')
            self.assertEqual(['fit imports filters'], upward(root), text)
        self.assertEqual([], upward(self.root(
            fit__odd='from nfv_sched.base import strings\nimport os',
            base__strings='')))

    def test_figures(self):
        alike = 'a: int\n    b: int\n    c: int\n    d: int'
        for more, pairs in (('', 1), ('"""Border to two."""\n    ', 0)):
            root = self.root(
                base__one='class One:\n    ' + alike,
                nova__two='from nfv_sched.base import one as other\n'
                          'import typing as ty\n'
                          f'class Two:\n    {more}{alike}\n    e: int')
            self.assertEqual(pairs, len(mirrored(root)))
            self.assertEqual((1, 2), (renamed(root), floors(root)))

    def test_single(self):
        for own, plugin, found in (
            ('a_b = m:B', 'nfv_a_b = m:B', []),
            ('', 'nfv_a_b = m:B', ['nfv_a_b = m:B']),
            ('a_b = m:B', 'nfv_a_b = m:C',
             ['nfv_a_b = m:B', 'nfv_a_b = m:C']),
        ):
            root = self.root(setup='') / 'nfv_sched'
            (root.parent / 'setup.cfg').write_text(
                f'[entry_points]\nnfv_sched.cli =\n  {own}\n'
                f'# Why.\nopenstack.extension =\n  {plugin}\n')
            self.assertEqual(found, single(root))

    def test_attribute_readers(self):
        for text, readers in (
                ("part.thread_policy == 'isolate'", ['one.py']),
                ("Node(thread_policy=policy)", [])):
            self.assertEqual(readers, attribute_readers(
                self.root(one=text), 'thread_policy'), text)

    def test_doubled_classes(self):
        self.assertEqual({'Plan': ['one.py', 'ops/two.py']}, doubled_classes(
            self.root(one='class Plan: pass\nclass Step: pass',
                      ops__two='def late():\n    class Plan: pass',
                      tests__three='class Step: pass')))

    def test_private_uses(self):
        ours = ('_size = 1\n'
                'def _find(): pass\n'
                'class Box:\n'
                "    __slots__ = ('_lid',)\n"
                '    def __init__(self):\n'
                '        self._key = 1\n')
        for text, name in (
                ('self.box._key', '_key'), ('box.lid._lid', '_lid'),
                ('from nfv_sched.box import _find', '_find'),
                ("patch('nfv_sched.box._find')", '_find'),
                ("patch(box, '_find')", '_find')):
            self.assertEqual(
                {'tests/unit/test_box.py': {name: 1}}, private_uses(
                    self.root(box=ours, tests__unit__test_box=text)), text)
        for text in ('self._key', 'super()._key', 'pool._replace',
                     '_key = 1\nbox._key'):
            self.assertEqual({}, private_uses(
                self.root(box=ours, tests__unit__test_box=text)), text)
