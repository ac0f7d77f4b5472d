#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.

"""Read and parse the text of a cloud file, with the line of each field."""

import pathlib
import typing as ty

from oslo_utils import units
import yaml

from nfv_sched.simulator.cloud_file import problems

_MAX_BYTES = 64 * units.Mi


def read(path: str) -> str:
    """Read the text of a cloud file.

    :param path: the file
    :raises InputError: if it cannot be read, is too long, or is not UTF-8 text
    """
    file = pathlib.Path(path)
    try:
        if file.is_dir():
            raise problems.InputError([f'{path}: is a directory, not a file'])
        with file.open('rb') as stream:
            raw = stream.read(_MAX_BYTES + 1)
    except (OSError, ValueError) as e:
        reason = e.strerror if isinstance(e, OSError) else str(e)
        raise problems.InputError([f'{path}: {reason or e}'])
    if len(raw) > _MAX_BYTES:
        raise problems.InputError([f'{path}: larger than {_MAX_BYTES} bytes'])
    try:
        return raw.decode('utf-8-sig')
    except UnicodeDecodeError as e:
        line = raw.count(b'\n', 0, e.start) + 1
        raise problems.InputError([f'{path}:{line}: not UTF-8 text'])


class _MarkedLoader(yaml.SafeLoader):
    """A safe YAML loader that keeps lines and refuses duplicate keys."""

    def marked(self, marks: dict[problems.Path, int]) -> ty.Any:
        """Load the document.

        :param marks: gets the path of each field -> its line
        """
        node = self.get_single_node()
        if node is None:
            return None
        return self._build(node, (), marks, ())

    def _build(self, node, path, marks, above):
        marks.setdefault(path, node.start_mark.line + 1)
        if node in above:
            raise yaml.constructor.ConstructorError(
                None, None, 'an alias that contains itself', node.start_mark)
        above = (*above, node)
        if isinstance(node, yaml.SequenceNode):
            return [self._build(item, (*path, i), marks, above)
                    for i, item in enumerate(node.value)]
        if not isinstance(node, yaml.MappingNode):
            return self.construct_object(node, deep=True)
        own = [key.value for key, _ in node.value
               if key.tag != 'tag:yaml.org,2002:merge']
        for i, name in enumerate(own):
            if name in own[:i]:
                key = [k for k, _ in node.value if k.value == name][1]
                raise yaml.constructor.ConstructorError(
                    None, None, f'the key {name!r} is given twice',
                    key.start_mark)
        self.flatten_mapping(node)
        result = {}
        for key_node, value_node in node.value:
            # Keys are texts, also where YAML would read a number.
            if not isinstance(key_node, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(
                    None, None, 'a key that is not a plain name',
                    key_node.start_mark)
            key = key_node.value
            marks[(*path, key)] = key_node.start_mark.line + 1
            result[key] = self._build(value_node, (*path, key), marks, above)
        return result


def parse(text: str, path: str) -> tuple[ty.Any, dict[problems.Path, int]]:
    """Parse YAML.

    :param text: the YAML
    :param path: name of the file for messages
    :returns: (the document, path of each field -> its line)
    :raises InputError: if it is not YAML
    """
    marks: dict[problems.Path, int] = {}
    try:
        loader = _MarkedLoader(text)
        try:
            data = loader.marked(marks)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as e:
        mark = e.problem_mark or e.context_mark
        line = mark.line + 1 if mark else 1
        problem = ' '.join(str(e.problem or e.context).split())
        raise problems.InputError([
            f'{path}:{line}: not valid YAML: {problem}'])
    except yaml.reader.ReaderError as e:
        line = text.count('\n', 0, e.position) + 1
        raise problems.InputError([
            f'{path}:{line}: not text: the character #x{e.character:04x} is '
            'not allowed in YAML'])
    except (yaml.YAMLError, ValueError, OverflowError) as e:
        raise problems.InputError([f'{path}: not valid YAML: '
                                   f'{" ".join(str(e).split())}'])
    except RecursionError:
        raise problems.InputError([f'{path}: nested too deeply'])
    return data, marks
