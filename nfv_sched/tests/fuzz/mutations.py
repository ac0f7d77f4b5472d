# SPDX-License-Identifier: Apache-2.0
"""Change documents and texts at random.

``chance`` is a ``random.Random``, which may be one of hypothesis.
"""

from collections.abc import Iterator, Sequence
import copy
import json
import random
import re
import typing as ty

#: In texts that could be taken for the name of something on the machine.
MARKER = 'nowhere'

VALUES: Sequence[ty.Any] = (
    None, True, False, 0, -1, 1, 1 << 31, 1 << 63, 10 ** 400, 1.5, 1e300,
    float('inf'), float('nan'), '', ' ', '-', '0', '-1', '0-3,8', '0-65535',
    '0-99999999', '1e300', 'x' * 10000, '\x00\u202e', '\x1b[31m\r\n<script>',
    '\ud800', '\u2028', '9' * 5000, f'/{MARKER}', f'http://u:p@{MARKER}/',
    f'{MARKER}.classes', '$(touch x)', '--os-auth-url=x', '%(x)s', '<in> x',
    '<range-in> [1', '>= x', '["=", "$free_ram_mb"]', '2026-01-02T03:04:05Z',
    '9999-99-99', '0000:00:00.0', '11111111-1111-4111-8111-111111111111',
    [], {}, [None], {'': None}, [[[]]], [0], ['x'], {'x': 'y'}, {'0': 0},
    [{}])

#: What extra specs, properties of images and options can be called.
KEYS = (
    'hw:numa_nodes', 'hw:numa_cpus.0', 'hw:numa_cpus.1', 'hw:numa_mem.0',
    'hw:numa_mem.99', 'hw:cpu_policy', 'hw:cpu_thread_policy',
    'hw:cpu_dedicated_mask', 'hw:cpu_realtime', 'hw:cpu_realtime_mask',
    'hw:emulator_threads_policy', 'hw:mem_page_size', 'hw:locked_memory',
    'hw:cpu_sockets', 'hw:cpu_max_threads', 'hw:mem_encryption', 'hw:pmem',
    'hw:pci_numa_affinity_policy', 'hw:tpm_version', 'hw:viommu_model',
    'hw:vif_multiqueue_enabled', 'hw:maxphysaddr_mode',
    'hw:maxphysaddr_bits', 'pci_passthrough:alias', 'accel:device_profile',
    'trait:CUSTOM_X', 'trait1:COMPUTE_NODE', 'resources:VCPU',
    'resources1:VGPU', 'resources:CUSTOM_X', 'group_policy', 'quota:cpu_quota',
    'capabilities:cpu_info', 'capabilities:vcpus', 'capabilities:stats:x',
    'aggregate_instance_extra_specs:x', 'hw_numa_nodes', 'hw_numa_cpus.0',
    'hw_mem_page_size', 'hw_cpu_policy', 'hw_cpu_realtime_mask',
    'hw_machine_type', 'hw_architecture', 'img_version', 'traits_required',
    'cpu_allocation_ratio', 'max_instances_per_host', 'filter_tenant_id',
    'availability_zone', 'io_workload', 'same_host', 'different_host',
    'query', 'cidr', 'build_near_host_ip', 'max_server_per_host')

#: What may stand in any text.
TEXTS = ('', '-', '-1', '1.5', '1e300', '9' * 5000, '0-99999999', '\u0663',
         '\u00b2', '\x00', '\x1b[31m', '\u202e', '\ufeff', '#', ',', 'x',
         'nan', 'x' * 10000, f'/{MARKER}')

#: What means something to a parser of YAML.
YAML = ('&a ', '*a', '*b', '&a *a', '<<: *a', '<<: [*a, *a]', '<<: x',
        '!!python/object:os.abort', '!!python/name:os.abort', '!!binary x',
        '!!binary "eA=="', '!!set {x}', '!!omap [x: 1]', '!!pairs [x: 1]',
        '!!timestamp x', '!!int x', '!!int ""', '!!float x', '!!bool x',
        '!!null x', '!!str 1', '!x y', '!', '!!', '0o17', '017', '08',
        '0x_', '0b', '1_000', '190:20:30', '.inf', '-.inf', '.nan',
        '2001-12-14', '2001-99-99', '2001-12-14t21:59:43.10-05:00',
        '2001-12-14 21:59:43.10 -99:00', '= ', '~', 'yes', 'off', '? {}',
        '? [a]\n: b', '- - -', '{x', '[', ']', '}', '\t', ' ', '\ufeff',
        '\x85', '\u2028', '\x00', '\ud800', '"\\ud800"', '"\\x1b[0m"', '|\n',
        '>-\n', '%YAML 9.9\n---\n', '%TAG ! x\n', '---\n', '...\n', '# x',
        '&a [*a]', '&a {x: *a}', '9' * 400, '1' + ':1' * 200, '"', "'",
        '[' * 200, '{a: ' * 200, '- ' * 200, '@', '`', ': ', ', ')

_SCALAR = re.compile(r'''[^\s,:=|{}\[\]"'()]+''')


def places(value: ty.Any, path: tuple = ()) -> Iterator[tuple]:
    yield path
    items: ty.Any = (value.items() if isinstance(value, dict) else
                     enumerate(value) if isinstance(value, list) else ())
    for key, each in items:
        yield from places(each, (*path, key))


def _at(document: ty.Any, path: Sequence) -> ty.Any:
    for key in path:
        document = document[key]
    return document


def changed(document: ty.Any, chance: random.Random) -> ty.Any:
    """Return a document with some of its values changed, moved or removed."""
    document = copy.deepcopy(document)
    for _number in range(chance.choice((1, 1, 2, 4))):
        paths = list(places(document))
        path = chance.choice(paths)
        if not path:
            if chance.random() < 0.9:
                continue
            return chance.choice(VALUES)
        parent, key = _at(document, path[:-1]), path[-1]
        change = chance.choice(('value', 'value', 'value', 'remove', 'number',
                                'other', 'twice', 'key', 'deep'))
        if change == 'value':
            parent[key] = copy.deepcopy(chance.choice(VALUES))
        elif change == 'remove':
            del parent[key]
        elif change == 'number' and type(parent[key]) in (int, float):
            parent[key] = chance.choice((
                -parent[key], parent[key] * 1000, parent[key] + 1,
                parent[key] - 1, str(parent[key]), [parent[key]]))
        elif change == 'other':
            parent[key] = copy.deepcopy(_at(document, chance.choice(paths)))
        elif change == 'twice' and isinstance(parent, list):
            parent.append(copy.deepcopy(parent[key]))
        elif change == 'deep':
            for _level in range(chance.choice((1, 2, 70, 300))):
                parent[key] = [parent[key]]
        elif isinstance(parent, dict):
            name = str(chance.choice((*KEYS, *KEYS, *VALUES)))
            parent[name] = copy.deepcopy(chance.choice((
                parent[key], chance.choice(VALUES))))
    return document


def json_bytes(document: ty.Any, chance: random.Random) -> bytes:
    """Return JSON, some keys of which may be there twice."""
    text = json.dumps(document)
    if chance.random() < 0.1:
        pairs = list(re.finditer(r'"\w+": ?[^][{}",]+', text))
        if pairs:
            pair = chance.choice(pairs)
            text = f'{text[:pair.end()]}, {pair[0]}{text[pair.end():]}'
    return text.encode()


def changed_text(text: str, chance: random.Random,
                 tokens: Sequence[str]) -> str:
    """Return a text with some words changed to tokens, or lines changed."""
    for _number in range(chance.choice((1, 1, 2, 4))):
        lines = text.split('\n')
        number = chance.randrange(len(lines))
        words = list(_SCALAR.finditer(text))
        change = chance.choice(('word', 'word', 'word', 'before', 'line',
                                'remove', 'twice', 'indent', 'swap', 'cut'))
        token = chance.choice(tokens)
        if change in ('word', 'before', 'swap') and words:
            word = chance.choice(words)
            new = (chance.choice(words)[0] if change == 'swap' else
                   token if change == 'word' else token + word[0])
            text = text[:word.start()] + new + text[word.end():]
            continue
        if change == 'line':
            indent = re.match(' *', lines[number])
            lines.insert(number, (indent[0] if indent else '') + token)
        elif change == 'remove':
            del lines[number]
        elif change == 'twice':
            lines.insert(number, lines[number])
        elif change == 'indent':
            lines[number] = chance.choice((' ', '    ', '\t', '- ')) + (
                lines[number])
        elif change == 'cut':
            lines[number] = lines[number][:chance.randrange(
                len(lines[number]) + 1)]
            lines = lines[:chance.choice((number + 1, len(lines)))]
        text = '\n'.join(lines)
    return text


def changed_bytes(content: bytes, chance: random.Random) -> bytes:
    for _number in range(chance.choice((1, 1, 2, 8))):
        if not content:
            return content
        at = chance.randrange(len(content))
        size = chance.choice((1, 1, 2, 4, 64))
        change = chance.choice(('bit', 'bytes', 'remove', 'twice', 'cut'))
        if change == 'bit':
            content = (content[:at]
                       + bytes([content[at] ^ 1 << chance.randrange(8)])
                       + content[at + 1:])
        elif change == 'bytes':
            content = (content[:at] + chance.choice(
                (b'\0', b'\xff', b'\xed\xa0\x80', b'\xef\xbb\xbf', b'"', b'['))
                * size + content[at + size:])
        elif change == 'remove':
            content = content[:at] + content[at + size:]
        elif change == 'twice':
            content = content[:at + size] + content[at:]
        else:
            content = content[:at]
    return content
