# SPDX-License-Identifier: Apache-2.0
"""Directives that write reference pages from the code.

``nfv-extra-specs`` describes the flavor extra specs as the validators for the
Nova API have them; ``nfv-filters``, ``nfv-weighers``, ``nfv-metrics`` and
``nfv-schemas`` list what there is of these.  ``nfv-help`` shows what a program
says of itself.
"""

import inspect
import os
import pathlib
import subprocess
import sys

from docutils import nodes
from docutils import statemachine
from sphinx.util import docutils
from sphinx.util import nodes as sphinx_nodes

# For the modules that are asked for help.
_ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), '..', '..'))


def _values(value: dict) -> str:
    """What may be given, in words."""
    if 'enum' in value:
        return ', '.join(f'``{item}``' for item in value['enum'])
    text = f'``{value["pattern"]}``, a regular expression'
    if 'description' in value:
        text = f'{value["description"].rstrip(".")} ({text})'
    return text


def _describe(validator) -> list[str]:
    """One extra spec, as reStructuredText."""
    lines = [f'.. describe:: {validator.name}', '',
             f'   {validator.description}', '']
    for parameter in validator.parameters:
        lines.append(
            f'   :{{{parameter["name"]}}}: '
            f'{parameter["description"].rstrip(".")} '
            f'(``{parameter["pattern"]}``)')
    return lines + [f'   :Values: {_values(validator.value)}', '']


class _Generated(docutils.SphinxDirective):

    def parsed(self, lines, module):
        """The nodes of lines that were made from a module."""
        self.env.note_dependency(module.__file__)
        section = nodes.section(document=self.state.document)
        sphinx_nodes.nested_parse_with_titles(
            self.state, statemachine.StringList(
                lines, source=module.__file__), section)
        return section.children


class ExtraSpecs(_Generated):
    """``.. nfv-extra-specs::``"""

    def run(self):
        """The nodes of all extra specs but for synonyms."""
        from nfv_sched.base import extra_specs
        from nfv_sched.scheduler import validators
        lines = []
        for validator in validators.register():
            if validator.name.startswith(extra_specs.NAMESPACE):
                lines += _describe(validator)
        return self.parsed(lines, validators)


def _summary(cls: type) -> str:
    """The first sentence about a class, in words of users."""
    return inspect.getdoc(cls).split('\n')[0].replace('guest', 'server')


class Filters(_Generated):
    """``.. nfv-filters::``"""

    def run(self):
        """The nodes of all filters, with the extra specs of their rules."""
        from nfv_sched import filters
        from nfv_sched.fit import rules
        from nfv_sched.ops.simulator import configuration
        classes = {cls.__name__: cls for cls in filters.all_filters()}
        lines = []
        for name in configuration.our_filters():
            keys = ', '.join(f'``{key}``' for rule in rules.classes()
                             if rule.filters[0] == name for key in rule.keys)
            lines += [f'``{name}``{" " * bool(keys)}{keys}',
                      f'    {_summary(classes[name])}', '']
        return self.parsed(lines, filters)


class Weighers(_Generated):
    """``.. nfv-weighers::``"""

    def run(self):
        """The nodes of all weighers."""
        from nfv_sched import weights
        lines = []
        for cls in weights.all_weighers():
            lines += [f'``{cls.__name__}``', f'    {_summary(cls)}', '']
        return self.parsed(lines, weights)


class Schemas(docutils.SphinxDirective):
    """``.. nfv-schemas::``"""

    def run(self):
        """Links to the schemas that conf.py has made."""
        folder = pathlib.Path(self.env.srcdir, 'schemas')
        text = ', '.join(f':download:`{path.stem} </schemas/{path.name}>`'
                         for path in sorted(folder.glob('*.json')))
        return self.parse_text_to_nodes(f'{text}.')


class Metrics(_Generated):
    """``.. nfv-metrics::``"""

    def run(self):
        """The nodes of all metrics, with their labels."""
        from nfv_sched.ledger import metrics as ledger_metrics
        from nfv_sched.ops.serve.metrics import rendering
        metrics = [*rendering.GAUGES, *(
            value for value in vars(rendering).values()
            if isinstance(value, rendering.Metric))]
        counters = {rendering.REFUSALS, rendering.SHADOW,
                    rendering.DECISIONS, rendering.ERRORS}
        lines = []
        for metric in metrics:
            labels = f'{{{",".join(metric.labels)}}}' if metric.labels else ''
            name = f'{metric.name}{"_total" if metric in counters else ""}'
            lines += [f'``{name}{labels}``', f'    {metric.text}', '']
        for line in ledger_metrics.TEXT.splitlines():
            if line.startswith('# HELP'):
                name, text = line.split(maxsplit=3)[2:]
                lines += [f'``{name}``', f'    {text}', '']
        return self.parsed(lines, rendering)


class Help(docutils.SphinxDirective):
    """``.. nfv-help:: MODULE [ARGUMENT...]``"""

    required_arguments = 1
    optional_arguments = 1
    final_argument_whitespace = True

    def run(self):
        """What the module says to --help, literally."""
        arguments = ' '.join(self.arguments).split()
        done = subprocess.run(
            [sys.executable, '-W', 'ignore', '-m', *arguments, '--help'],
            capture_output=True, text=True, check=True, timeout=120,
            env={**os.environ, 'COLUMNS': '79', 'HOME': '/nonexistent',
                 'PYTHONPATH': _ROOT})
        literal = nodes.literal_block(done.stdout, done.stdout)
        literal['language'] = 'none'
        return [literal]


def setup(app):
    """Called by Sphinx."""
    app.add_directive('nfv-extra-specs', ExtraSpecs)
    app.add_directive('nfv-help', Help)
    app.add_directive('nfv-filters', Filters)
    app.add_directive('nfv-weighers', Weighers)
    app.add_directive('nfv-metrics', Metrics)
    app.add_directive('nfv-schemas', Schemas)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
