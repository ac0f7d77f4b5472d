# SPDX-License-Identifier: Apache-2.0
"""What readers of the documentation copy: commands, and configuration.

The usual client asks for a microversion at which Nova's API checks no extra
specs, unless it is told another one.  Options of nova.conf are those that Nova
and nfv-sched know, with values that they take.
"""

import ast
import json
import os
import pathlib
import pkgutil
import re
import shlex
import subprocess
import textwrap
from xml.etree import ElementTree

import fixtures
from keystoneauth1 import loading
from nova.conf import neutron as neutron_conf
from nova.scheduler import filters as nova_filters
from oslo_config import cfg
from oslo_config import iniparser
from placement.conf import placement as placement_conf
import testtools
import yaml

import nfv_sched
from nfv_sched.checks import computes
from nfv_sched.checks import scheduler
from nfv_sched import filters
from nfv_sched.ops.cli import base as cli_base
from nfv_sched.ops.serve import command as serve_command
from nfv_sched.ops.simulator import configuration
from nfv_sched.tests import base
from nfv_sched.tests import documented
from nfv_sched.tests.tempest import config as tempest_config
from nfv_sched.tests.unit import test_house

_ROOT = pathlib.Path(nfv_sched.__file__).parents[1]
_PLACES = ('*.md', '*.rst', 'devstack/*', 'doc/source/**/*.rst',
           'etc/**/*', 'releasenotes/**/*.yaml')

# The options of the client are before the command, and may be on other lines.
_COMMAND = re.compile(
    r'\bopenstack(?P<options>(?:\s+-\S+(?:\s+[^-\s]\S*)?)*?)\s+'
    r'flavor\s+(?P<verb>set|create)\b(?P<rest>.*)')
_CHECKED = re.compile(r'--os-compute-api-version[ =]2\.(8[6-9]|9\d)\b')


def _unchecked(text):
    """Commands that give flavors extra specs that nobody checks."""
    for command in _COMMAND.finditer(re.sub(r'\\\n\s*', '', text)):
        if (command['verb'] == 'set' or '--property' in command['rest']) and (
                not _CHECKED.search(command['options'])):
            yield command.group()


class FilterListsTest(base.TestCase):
    """Who copies a list enables all filters, in the order of their reasons."""

    # An option, of which a line that ends with a comma is continued.
    OPTION = r'^ *enabled_filters = ((?:.*,\n)*.*)'
    # Path, what the names are in, and whether those of limits are among them.
    LISTS = (
        ('doc/source/install/index.rst', OPTION, False),
        ('doc/source/install/index.rst', r'^(``\w+Filter``.*)', True),
        ('devstack/settings', r'^_NFV_SCHED_FILTERS\+?=(.*)', True),
    )

    def test_lists(self):
        ours = configuration.our_filters()
        for path, pattern, limited in self.LISTS:
            text = (_ROOT / path).read_text(encoding='utf-8')
            names = re.findall(r'\w+Filter\b', ' '.join(
                re.findall(pattern, text, re.MULTILINE)))
            self.assertEqual(
                [name for name in ours
                 if limited or name not in scheduler.LIMITS],
                [name for name in names if name in ours], (path, pattern))


class FlavorCommandsTest(base.TimedTestCase):

    def test_every_command_is_checked(self):
        found = 0
        for place in _PLACES:
            for path in _ROOT.glob(place):
                if path.is_file():
                    text = path.read_text(encoding='utf-8')
                    self.assertEqual([], list(_unchecked(text)), path)
                    found += len(_COMMAND.findall(
                        re.sub(r'\\\n\s*', '', text)))
        self.assertGreater(found, 3)

    def test_advice(self):
        self.assertEqual([], list(_unchecked(computes.ADVICE)))


class _Sections(iniparser.BaseParser):
    """Reads a file as oslo.config does."""

    def __init__(self, text):
        super().__init__()
        self.options = []
        self._section = 'DEFAULT'
        self.parse(text.splitlines(keepends=True))

    def new_section(self, section):
        self._section = section

    def assignment(self, key, value):
        self.options.append((self._section, key, '\n'.join(value)))


def blocks(text, language):
    return [textwrap.dedent(found) for found in re.findall(
        rf'^ *\.\. code-block:: {language}\n\n((?:(?: +.*)?\n)+)', text,
        re.MULTILINE)]


def deployment_page(name='deployment.rst'):
    """Return a page about deployments, with the files that it includes."""
    folder = _ROOT / 'doc' / 'source' / 'install'

    def block(match):
        path, language = match.groups()
        content = (folder / path).read_text(encoding='utf-8')
        return (f'.. code-block:: {language}\n\n'
                f'{textwrap.indent(content, "   ")}')

    return re.sub(
        r'(?m)^\.\. literalinclude:: (\S+)\n   :language: (\w+)\n'
        r'(?:   :.*\n)?', block,
        (folder / name).read_text(encoding='utf-8'))


def as_ini(overrides):
    """What OpenStack-Ansible makes of overrides, as an ini file.

    Its README says it: a set becomes several lines, a list one with commas.
    """
    lines = []
    for section, options in overrides.items():
        lines.append(f'[{section}]')
        for option, value in options.items():
            if isinstance(value, dict):
                lines += [f'{option} = {word}' for word in value]
            elif isinstance(value, list):
                lines.append(f'{option} = {",".join(map(str, value))}')
            else:
                lines.append(f'{option} = {value}')
    return '\n'.join(lines) + '\n'


def as_helm_ini(values):
    """What OpenStack-Helm makes of values, as an ini file.

    helm-toolkit/templates/utils/_to_oslo_conf.tpl says it: a list becomes one
    line with commas, a map of the type multistring several lines.
    """
    return as_ini({
        section: {option: dict.fromkeys(value['values'])
                  if isinstance(value, dict) else value
                  for option, value in options.items()}
        for section, options in values.items()})


class ConfigurationTest(base.TestCase):
    #: By their first section, what is not for Nova.
    FOREIGN = re.compile(
        r'\[\[local\|localrc\]\]|\[(Unit|Service|Timer)\]'
        r'|\[watcher_strategies\.|\[taskflow_')
    #: What roles of OpenStack-Ansible have variables for.
    VARIABLES = {
        'nova_user_pip_packages', 'nova_scheduler_default_filters',
        'nova_scheduler_extra_filters', 'nova_nova_conf_overrides',
        'placement_placement_conf_overrides'}
    #: The same of Kayobe.
    KAYOBE = {'kolla_build_customizations'}
    #: What charts of OpenStack-Helm have values for, below "conf", too.
    CHARTS = {'images', 'conf', 'extraObjects'}
    CHART_CONF = {'logging', 'nova', 'overrides', 'placement'}
    #: Kinds of Kubernetes and of the operators of RHOSO.
    KINDS = {'ConfigMap', 'Deployment', 'OpenStackControlPlane',
             'OpenStackVersion', 'Route', 'Service'}
    #: What Kolla-Ansible merges; a name of a host is compute1.
    MERGED = {f'/etc/kolla/config/{name}.conf' for name in (
        'nova/nova-scheduler', 'nova/nova-conductor', 'nova/nova-compute',
        'nova/compute1/nova', 'placement')}

    def wrong(self, text, tempest=False):
        """Return complaints about what Nova or Placement refuses."""
        options = _Sections(text).options
        if tempest:
            conf = cfg.ConfigOpts()
            conf.register_opts(tempest_config.OPTIONS, tempest_config.GROUP)
            conf.register_opt(tempest_config.SERVICE_OPTION,
                              group='service_available')
        elif {section for section, _, _ in options} == {'placement'} and (
                'allocation_conflict_retry_count' in text):
            conf = cfg.ConfigOpts()
            placement_conf.register_opts(conf)
        else:
            conf = base.CONF
        path = pathlib.Path(self.useFixture(
            fixtures.TempDir()).path) / 'nova.conf'
        path.write_text(text)
        conf(['--config-file', str(path)], project='nova',
             default_config_files=[], default_config_dirs=[])
        errors = []
        if conf is base.CONF:
            try:
                neutron_conf.register_dynamic_opts(conf)
            except cfg.Error as exc:
                errors.append(str(exc))
        # Registered by who authenticates, and when.
        credentials = {
            (section, more.dest) for section, option, value in options
            if option == 'auth_type'
            for more in loading.get_auth_plugin_conf_options(value)}
        for section, option, _ in options:
            if (section, option) in credentials:
                continue
            try:
                group = conf if section == 'DEFAULT' else conf[section]
                group[option.replace('-', '_')]
            except (cfg.Error, KeyError, ValueError) as exc:
                errors.append(f'[{section}] {option}: {exc}')
        return errors + self.unknown_filters(options)

    def unknown_filters(self, options):
        known = {cls.__name__ for cls in (
            *nova_filters.all_filters(), *filters.all_filters())}
        return [f'there is no {name}' for _, option, value in options
                if option == 'enabled_filters' for name in value.split(',')
                if name.strip() not in known]

    def pages(self):
        for path in sorted((_ROOT / 'doc' / 'source').rglob('*.rst')):
            yield path, (
                deployment_page(path.name) if path.parent.name == 'install'
                else path.read_text(encoding='utf-8'))

    def test_nova_conf(self):
        found = 0
        for path, text in self.pages():
            for block in blocks(text, 'ini'):
                if not self.FOREIGN.match(block):
                    self.assertEqual([], self.wrong(
                        block, tempest=path.name == 'tempest.rst'), path)
                    found += 1
        self.assertGreater(found, 10)

    def deployment(self):
        text = deployment_page()
        return text, [document for block in blocks(text, 'yaml')
                      for document in yaml.safe_load_all(block)]

    def has_all_filters(self, text):
        """Check each list of filters in an ini file; return their number."""
        ours = configuration.our_filters()
        lists = [re.findall(r'\w+', value)
                 for _, option, value in _Sections(text).options
                 if option == 'enabled_filters']
        for names in lists:
            self.assertEqual(ours, [name for name in names if name in ours])
        return len(lists)

    def test_openstack_ansible(self):
        found = set()
        enabled = []
        for variables in self.deployment()[1]:
            if set(variables) & self.VARIABLES:
                found |= set(variables)
            for name, value in variables.items():
                if name.endswith('_conf_overrides'):
                    self.assertEqual([], self.wrong(as_ini(value)), name)
                elif name.endswith('filters'):
                    enabled += value
        self.assertEqual(self.VARIABLES, found)
        text = f'[filter_scheduler]\nenabled_filters = {",".join(enabled)}\n'
        self.assertEqual([], self.wrong(text))
        self.assertEqual(1, self.has_all_filters(text))

    def test_deployments(self):
        """Each block of YAML is for one of the projects."""
        for names in self.deployment()[1]:
            if 'apiVersion' in names:
                self.assertIn(names['kind'], self.KINDS)
            else:
                self.assertTrue(any(set(names) <= known for known in (
                    self.VARIABLES, self.KAYOBE, self.CHARTS)), set(names))

    def test_openstack_helm(self):
        found = set()
        lists = 0
        hosts = 0
        for values in self.deployment()[1]:
            conf = values.get('conf', {})
            found |= set(conf)
            hosts_of = conf.get('overrides', {}).get(
                'nova_compute', {}).get('hosts', ())
            files = [each['conf']['nova'] for each in hosts_of]
            hosts += len(files)
            files += [conf[name] for name in ('nova', 'placement')
                      if name in conf]
            for each in files:
                text = as_helm_ini(each)
                self.assertEqual([], self.wrong(text))
                lists += self.has_all_filters(text)
            if 'logging' in conf:
                logger = conf['logging']['logger_nfv_sched']
                self.assertEqual('nfv_sched', logger['qualname'])
                self.assertIn('nfv_sched', conf['logging']['loggers']['keys'])
        self.assertEqual(self.CHART_CONF, found)
        self.assertEqual((1, 1), (lists, hosts))

    def test_rhoso(self):
        files = []
        for document in self.deployment()[1]:
            if document.get('kind') == 'OpenStackControlPlane':
                nova, placement = [document['spec'][name]['template']
                                   for name in ('nova', 'placement')]
                cell = nova['cellTemplates']['cell1']
                files += [service['customServiceConfig'] for service in (
                    nova['schedulerServiceTemplate'],
                    cell['conductorServiceTemplate'], placement)]
            elif document.get('kind') == 'ConfigMap':
                # They are read after, and among, those of the operator.
                for name in document['data']:
                    self.assertRegex(name, r'^\d\d-[\w-]+\.conf$')
                files += document['data'].values()
        for text in files:
            self.assertEqual([], self.wrong(text))
        self.assertEqual(4, len(files))
        self.assertEqual(1, sum(map(self.has_all_filters, files)))

    def objects(self, kind):
        return [each for document in self.deployment()[1] for each in (
            document, *document.get('extraObjects', {}).values())
            if each.get('kind') == kind]

    def parsed(self, command):
        """The options of "snapshot serve", which it would begin with."""
        self.assertEqual('nfv-sched', command[0])
        factory, _, rest = cli_base.NFVSched().command_manager.find_command(
            command[1:])
        self.assertIs(serve_command.ServeSnapshot, factory)
        instance = factory(None, None)
        parsed = instance.get_parser('nfv-sched').parse_args(rest)
        instance.check(parsed)
        return parsed

    def secret_files(self, command):
        """The files of "snapshot serve" that others must not read."""
        parsed = self.parsed(command)
        paths = [parsed.tls_cert, parsed.tls_key, parsed.auth_file]
        self.assertNotIn(None, paths)
        return paths

    def configuration_files(self, command):
        if command[0] == 'nfv-sched':
            # oslo.config finds both by the name of the project.
            return self.parsed(command).config_file or [
                '/etc/nova/nova.conf', '/etc/nova/nova.conf.d']
        self.assertEqual('nfv-sched-ledger', command[0])
        options, paths = command[1::2], command[2::2]
        self.assertLessEqual(set(options), {'--config-file', '--config-dir'})
        return paths

    def pods(self):
        """Each template of a pod with its container, by the command."""
        found = {}
        for document in self.objects('Deployment'):
            template = document['spec']['template']
            self.assertEqual(
                document['spec']['selector']['matchLabels'],
                template['metadata']['labels'])
            container, = template['spec']['containers']
            found.setdefault(container['command'][0], []).append(
                (template, container))
        return found

    def test_pods(self):
        """What runs our services mounts what it has, and what it reads."""
        pods = self.pods()
        self.assertEqual(
            {'nfv-sched': 2, 'nfv-sched-ledger': 2},
            {name: len(found) for name, found in pods.items()})
        for template, container in [
                each for found in pods.values() for each in found]:
            self.assertEqual(
                {volume['name'] for volume in template['spec']['volumes']},
                {mount['name'] for mount in container['volumeMounts']})
            mounts = [mount['mountPath']
                      for mount in container['volumeMounts']]
            for path in self.configuration_files(container['command']):
                self.assertTrue(any(f'{mount}/'.startswith(
                    f'{path.rstrip("/")}/') for mount in mounts), path)

    def test_secrets(self):
        """The snapshot service gets its files, and only its group does."""
        text, _ = self.deployment()
        made = {
            name: set(re.findall(r'--from-file (\S+)', files))
            for name, files in re.findall(
                r'create secret generic (\S+) \\\n(.*)\n', text)}
        pods = self.pods()['nfv-sched']
        for template, container in pods:
            volumes = {each['name']: each
                       for each in template['spec']['volumes']}
            mounts = {each['mountPath']: volumes[each['name']]
                      for each in container['volumeMounts']}
            for path in self.secret_files(container['command']):
                folder, _, name = path.rpartition('/')
                secret = mounts[folder]['secret']
                self.assertIn(name, made[secret['secretName']])
                self.assertEqual(0o440, secret['defaultMode'])
            self.assertIn('fsGroup', template['spec']['securityContext'])
            # It writes snapshots there.
            self.assertIn('emptyDir', mounts['/tmp'])

    def test_services(self):
        """What is exposed is where the snapshot service listens."""
        names = []
        for service in self.objects('Service'):
            (template, container), = [
                (template, container)
                for template, container in self.pods()['nfv-sched']
                if template['metadata']['labels']
                == service['spec']['selector']]
            _, port = self.parsed(container['command']).listen
            self.assertEqual([port], [
                each['containerPort'] for each in container['ports']])
            self.assertEqual([port], [
                each['port'] for each in service['spec']['ports']])
            self.assertEqual(
                {'path': '/healthz', 'port': port, 'scheme': 'HTTPS'},
                container['readinessProbe']['httpGet'])
            names.append(service['metadata']['name'])
        self.assertEqual(2, len(names))
        route, = self.objects('Route')
        self.assertEqual({'kind': 'Service', 'name': names[-1]},
                         route['spec']['to'])
        self.assertEqual(port, route['spec']['port']['targetPort'])
        # Otherwise the router would end TLS, with its own certificate.
        self.assertEqual('passthrough', route['spec']['tls']['termination'])

    def test_kolla_containers(self):
        """Kolla's images get, and have, the files that a command reads."""
        text, _ = self.deployment()
        sessions = ''.join(blocks(text, 'console')).replace('\\\n', '')
        copied = {}
        for words in map(shlex.split, re.findall('(?m)^# (cp .*)', sessions)):
            copied.setdefault(words[-1].rstrip('/'), set()).update(
                path.rpartition('/')[2] for path in words[1:-1])
        folders = re.findall(
            r'KOLLA_CONFIG_STRATEGY=COPY_ALWAYS +'
            r'--volume (\S+):/var/lib/kolla/config_files:ro ', sessions)
        self.assertEqual(2, len(folders))
        configs = [json.loads(block) for block in blocks(text, 'json')]
        for folder, config in zip(folders, configs, strict=True):
            self.assertIn(f'``{folder}/config.json``', text)
            files = {each['dest']: each for each in config['config_files']}
            self.assertEqual(
                {f'/var/lib/kolla/config_files/{name}'
                 for name in copied[folder]},
                {each['source'] for each in files.values()})
            command = shlex.split(config['command'])
            if command == ['nfv-sched-ledger']:
                continue  # with the usual nova.conf
            for path in self.configuration_files(command):
                self.assertIn(path, files)
            for path in self.secret_files(command):
                self.assertEqual(
                    ('nova', '0400'),
                    (files[path]['owner'], files[path]['perm']))

    def test_images(self):
        text, _ = self.deployment()
        images = blocks(text, 'docker')
        self.assertEqual(2, len(images))
        for image in images:
            self.assertRegex(image, r'^FROM \S+\n')
            self.assertIn('\nCOPY . /src\n', image)
            name, = re.findall(r"--constraint /src/(\S+) '/src\[ops\]'", image)
            self.assertTrue((_ROOT / name).is_file(), name)

    def test_kolla(self):
        text = deployment_page()
        for folder in ('/etc/kolla/config',
                       '$KAYOBE_CONFIG_PATH/kolla/config'):
            self.assertEqual(
                {name.replace('/etc/kolla/config', folder)
                 for name in self.MERGED},
                set(re.findall(
                    re.escape(folder) + r'/[\w/.-]+\.conf', text)))
        # What its template knows by the name of the image.
        self.assertIn(' nova_base_pip_packages_append ', text)
        self.assertIn(' nova_base_pip_packages_append:\n', text)
        self.assertEqual(1, sum(
            self.has_all_filters(block) for block in blocks(text, 'ini')))


#: What the page about deployments names of other projects, and where it is.
SOURCES = pathlib.Path(__file__).with_name('deployment_sources.yaml')


class DeploymentNamesTest(base.TimedTestCase):
    """Paths, keys and names are those in the sources of the projects."""

    #: Folder with clones of the repositories, such as openstack/kolla in it.
    CLONES = 'NFV_SCHED_DEPLOYMENT_CLONES'
    #: Keys of Kubernetes whose values are names of the deployment.
    NAMING = {'fsGroup', 'runAsUser', 'secretName', 'serviceAccountName',
              'subPath'}
    _PATH = re.compile(
        r'\$KAYOBE_CONFIG_PATH/[\w./-]+'
        r'|(?<![\w./>}-])/(?:etc|var|usr|lib)/[\w./-]+')

    def setUp(self):
        super().setUp()
        content = yaml.safe_load(SOURCES.read_text(encoding='utf-8'))
        self.commits = content['commits']
        self.sections = content['sections']
        text = deployment_page()
        parts = re.split(r'(?m)^(\S.*)\n-{4,}\n', text)
        self.pages = dict(zip(parts[1::2], parts[2::2]))
        self.pages['kolla.rst'] = deployment_page('kolla.rst')

    def facts(self, title):
        """Repository, file, name and text of what a section names."""
        for repository, files in self.sections[title].items():
            for path, names in files.items():
                for name, quoted in names.items():
                    yield repository, path, str(name), quoted

    def keys(self, values, known, prefix):
        """Keys of a project in YAML, with those that they are in.

        Below those that are known are other things, such as options.
        """
        for key, value in values.items():
            path = f'{prefix}{key}'
            if isinstance(value, dict) and any(
                    name.startswith(f'{path}.') for name in known):
                yield from self.keys(value, known, f'{path}.')
            else:
                yield path

    def named(self, value):
        """What objects of Kubernetes name of the deployment."""
        if isinstance(value, list):
            for each in value:
                yield from self.named(each)
        elif isinstance(value, dict):
            for key, each in value.items():
                if key == 'nodeSelector':
                    yield from (f'{name}: {wanted}'
                                for name, wanted in each.items())
                elif key in self.NAMING:
                    yield str(each)
                else:
                    yield from self.named(each)

    def used(self, title, known):
        """What is used of a project, but for what is named after nfv-sched."""
        text = self.pages[title]
        names = {path.rstrip('./') for path in self._PATH.findall(text)}
        for block in blocks(text, 'yaml'):
            for values in yaml.safe_load_all(block):
                names.update(self.of_object(values, known))
        for block in blocks(text, 'json'):
            config = json.loads(block)
            names.update(config)
            names.update(key for each in config['config_files']
                         for key in each if key != 'dest')
        return {name for name in names
                if not re.search('nfv[-_]sched', name)}

    def of_object(self, values, known):
        if 'apiVersion' not in values:
            yield from self.keys(values, known, '')
            yield from self.named(values.get('extraObjects'))
        elif values['kind'].startswith('OpenStack'):
            yield values['apiVersion']
            yield from self.keys(
                {'spec': values['spec']}, known, f'{values["kind"]}.')
        else:
            yield from self.named(values)
            if values['kind'] == 'ConfigMap':
                yield values['metadata']['name']

    def test_names(self):
        """Each is in the sources; what is there is used."""
        self.assertEqual(self.sections.keys(), self.pages.keys())
        known = {title: {name for _, _, name, _ in self.facts(title)}
                 for title in self.sections}
        # Kayobe says which files of Kolla-Ansible are where.
        for title in ('Kayobe', 'kolla.rst'):
            known[title] |= {name for name in known['Kolla-Ansible']
                             if name.startswith('/')}
        for title in self.sections:
            used = self.used(title, known[title])
            self.assertEqual(
                set(), used - known[title] - {'/tmp'}, title)
            self.assertEqual(set(), {
                name for _, _, name, _ in self.facts(title)
                if name not in used and name not in self.pages[title]}, title)

    def test_commits(self):
        self.assertEqual(
            self.commits.keys(), set().union(*self.sections.values()))
        for commit in self.commits.values():
            self.assertRegex(commit, '^[0-9a-f]{40}$')

    @testtools.skipUnless(os.environ.get(CLONES), f'no {CLONES}')
    def test_sources(self):
        """The files of the projects have what is said of them."""
        top = pathlib.Path(os.environ[self.CLONES])
        self.assertEqual([], [
            (repository, path, name) for title in self.sections
            for repository, path, name, quoted in self.facts(title)
            if quoted not in subprocess.run(
                ['git', '-C', top / repository, 'show',
                 f'{self.commits[repository]}:{path}'], text=True,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout])


class BlocksTest(base.TimedTestCase):
    # Those of reStructuredText without a directive; in Markdown what is
    # indented, or fenced.
    _LITERAL = re.compile(
        r'^ *(?!\.\. )\S.*::\n\n((?:(?: +.*)?\n)+)', re.MULTILINE)
    _INDENTED = re.compile(r'(?<=\n\n)((?: {4}.*\n)+)')
    _FENCED = re.compile(r'^```\w+\n((?:(?!```).*\n)*)', re.MULTILINE)
    # A text in JSON cannot be broken into lines.
    _LANGUAGES = r'(?!json$)\S+'

    def blocks(self, path):
        text = path.read_text(encoding='utf-8')
        if path.suffix == '.rst':
            yield from blocks(text, self._LANGUAGES)
            patterns = [self._LITERAL]
        else:
            patterns = [self._INDENTED, self._FENCED]
        for pattern in patterns:
            yield from map(textwrap.dedent, pattern.findall(text))

    def wide(self, path):
        return [line for block in self.blocks(path)
                for line in block.splitlines()
                if len(line) > documented.WIDTH]

    def test_widths(self):
        """Readers see whole lines, without scrolling."""
        for path in documented.pages():
            self.assertEqual([], self.wide(path), path)


class WordsTest(base.TimedTestCase):
    """Users read "server", and "guest" only of what is inside one."""

    # Not names, such as vnics_per_guest, --guest-gb and unknown-guest, nor
    # values that JSON documents have.
    _GUEST = re.compile(
        r'(?<![\w:/.`-])(?<!unknown )(?<!NFV )guests?\b(?![-_/]|\w)'
        r'(?!\s+(?:NUMA|nodes?|cells?|vCPUs?|CPUs?|OS)\b)', re.IGNORECASE)
    _DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)

    def messages(self, source):
        """Return the sentences, and the nouns that are counted in them."""
        nodes = list(ast.walk(ast.parse(source)))
        docstrings = [
            node.body[0].value for node in nodes
            if isinstance(node, self._DOCUMENTED) and ast.get_docstring(node)]
        counted = [
            node.args[1] for node in nodes if isinstance(node, ast.Call) and
            getattr(node.func, 'attr', '') == 'count' and len(node.args) > 1]
        return [node.value for node in nodes
                if isinstance(node, ast.Constant) and
                isinstance(node.value, str) and node not in docstrings and
                (' ' in node.value or node in counted)]

    def test_messages(self):
        for path in sorted((_ROOT / 'nfv_sched').rglob('*.py')):
            if 'tests' not in path.parts:
                for text in self.messages(path.read_text(encoding='utf-8')):
                    self.assertIsNone(self._GUEST.search(text), (path, text))

    def test_pages(self):
        for path in documented.pages():
            if 'contributor' not in path.parts:
                match = self._GUEST.search(path.read_text(encoding='utf-8'))
                self.assertIsNone(match, (path, match))


class TaskPagesTest(base.TimedTestCase):
    """Pages about tasks explain their output, and say what comes next."""

    _TITLE = re.compile(r'^(\S.*)\n(?:-{4,}|~{4,})$', re.MULTILINE)

    def test_sections(self):
        for path in sorted((_ROOT / 'doc/source/tasks').glob('*.rst')):
            text = path.read_text(encoding='utf-8')
            titles = self._TITLE.findall(text)
            for title in ('How to read it', 'What next'):
                self.assertIn(title, titles, path)
            first = next((block for block in documented.blocks(path)
                          if block.is_ours), None)
            if first is not None:
                after = '\n'.join(text.splitlines()[first.end:])
                self.assertEqual(
                    'How to read it', self._TITLE.search(after)[1], path)


class ArchitectureTest(base.TimedTestCase):
    """What the contributor guide names is there."""

    GUIDE = _ROOT / 'doc' / 'source' / 'contributor'
    #: Pages whose paths are below ``nfv_sched/`` or the root of the source.
    PAGES = ('architecture.rst', 'design-notes.rst', 'glossary.rst')

    def test_files(self):
        for page in self.PAGES:
            names = re.findall(r':file:`([^`]+)`', (
                self.GUIDE / page).read_text(encoding='utf-8'))
            self.assertNotEqual([], names, page)
            self.assertEqual([], [
                name for name in names
                if not (test_house.ROOT / name).exists()
                and not (_ROOT / name).exists()], page)

    def test_names(self):
        names = 0
        for path in self.GUIDE.glob('*.rst'):
            for name in re.findall(
                    r':(?:class|func|meth):`~?(?:nfv_sched\.)?([\w.]+)`',
                    path.read_text(encoding='utf-8')):
                try:
                    pkgutil.resolve_name(f'nfv_sched.{name}')
                except (AttributeError, ImportError) as exc:
                    self.fail(f'{path.name}: {name}: {exc}')
                names += 1
        self.assertGreater(names, 50)

    def test_picture(self):
        """All packages are in it, and each imports what is below it."""
        rooms = test_house.used_rooms(test_house.ROOT)
        tag = '{http://www.w3.org/2000/svg}'
        picture = ElementTree.parse(self.GUIDE / 'architecture.svg')
        for wing, prefix in (('plugin', ''), ('tools', 'ops/')):
            heights = {
                prefix + text.text: int(text.get('y'))
                for text in picture.findall(
                    f".//{tag}g[@id='{wing}']/{tag}text[@class='room']")}
            self.assertEqual(set(), heights.keys() - rooms.keys())
            packages = {
                room for room in rooms
                if room.startswith('ops/') == (wing == 'tools')
                and (test_house.ROOT / room).is_dir()}
            self.assertEqual(set(), packages - heights.keys())
            self.assertEqual([], [
                f'{room} imports {used}' for room, height in heights.items()
                for used in rooms[room] & heights.keys()
                if heights[used] <= height])
