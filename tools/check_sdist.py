#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check the source distribution of nfv-sched, and wheels that are built.

Run it in a git clone, where Python's ``build`` is installed; files that git
does not know are left alone::

    python tools/check_sdist.py .

Every file that git knows must be in the source distribution, byte for byte.
It is unpacked outside git, and a wheel built from it there, as the pipelines
of distributions and of container images do: that wheel must have the same
files as one from the clone, and each file of ``etc/`` where pip puts it. So
must the source distribution and the wheel of an exported tree, and their
version is that of setup.cfg.
"""

import configparser
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile

#: Files of the repository that are of no use without git.
LEFT_OUT = {'.gitignore'}
#: Where pip puts what is in this folder of a wheel: in the environment.
DATA = '.data/data/'
#: What of the repository is there.
DATA_FOLDERS = ('etc/',)
#: What tells of the build itself: the commit, and hashes of all the others.
GENERATED = {'RECORD', 'pbr.json'}
#: Written anew by setuptools, with a section of its own.
SETUP = 'setup.cfg'


def repository_files(tree):
    """What git knows of.

    :param tree: root of the clone
    :returns: dict of paths relative to the root, to contents
    """
    names = subprocess.run(
        ['git', 'ls-files', '-z'], cwd=tree, check=True, text=True,
        stdout=subprocess.PIPE).stdout.split('\0')
    return {name: (tree / name).read_bytes() for name in names if name}


def clone(tree, contents, where):
    """Make a clone with nothing in it that git does not know.

    :param tree: root of the clone as it is, with generated files
    :param contents: what :func:`repository_files` gives for it
    :param where: directory for the new one; must not exist
    :returns: its root
    """
    def git(*arguments):
        subprocess.run(['git', *arguments], check=True,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    git('clone', '--quiet', tree, where)
    for name, content in contents.items():
        path = where / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod((tree / name).stat().st_mode)
    git('-C', where, 'add', '--all')
    return where


def build(kind, tree, where):
    """Build a distribution.

    :param kind: ``sdist`` or ``wheel``
    :param tree: root of a source tree
    :param where: directory for it; empty
    :returns: path of the distribution
    """
    # What is not in the source distribution itself is not to be needed.
    environment = {name: value for name, value in os.environ.items()
                   if name not in ('PBR_VERSION', 'GIT_DIR')}
    subprocess.run(
        [sys.executable, '-m', 'build', f'--{kind}', '--outdir', where, tree],
        check=True, cwd=where.parent, env=environment,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    found, = where.iterdir()
    return found


def unpack(sdist, where):
    """Unpack a source distribution.

    :param sdist: its path
    :param where: directory for it
    :returns: root of its source tree
    """
    with tarfile.open(sdist) as archive:
        archive.extractall(where, filter='data')
    found, = where.iterdir()
    return found


def export(repository, where):
    """Write the files of a repository, without git.

    :param repository: dict of paths relative to the root, to contents
    :param where: directory for them; must not exist
    :returns: root of the tree
    """
    for name, content in repository.items():
        path = where / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return where


def release(tree):
    """The version in setup.cfg.

    :param tree: root of a source tree
    """
    config = configparser.RawConfigParser()
    config.read(tree / SETUP)
    return config['metadata']['version']


def wheel_files(wheel):
    """What is in a wheel.

    :param wheel: its path
    :returns: dict of names to contents; without what tells of the build
    """
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()
                if not name.endswith('/')
                and name.rpartition('/')[2] not in GENERATED}


def data_files(contents):
    """The files of a wheel that are put beside the package.

    :param contents: what :func:`wheel_files` gives
    :returns: dict of paths relative to the environment, to contents
    """
    return {name.partition(DATA)[2]: content
            for name, content in contents.items() if DATA in name}


def different(what, wanted, found):
    """Complaints about files that are not as they should be.

    :param what: where they were found
    :param wanted: dict of names to contents
    :param found: dict of names to contents; may have more
    """
    return [f'{what}: {"missing" if name not in found else "differs"}: {name}'
            for name in sorted(wanted) if found.get(name) != wanted[name]]


def settings(content):
    """What a setup.cfg says, but for what setuptools has added.

    :param content: of the file
    :returns: the same for files that say the same, as bytes
    """
    config = configparser.RawConfigParser()
    config.optionxform = str
    config.read_string(content.decode())
    config.remove_section('egg_info')
    return repr({section: dict(config.items(section))
                 for section in config.sections()}).encode()


def main(argv):
    if len(argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    tree = pathlib.Path(argv[1]).resolve()
    repository = repository_files(tree)
    with tempfile.TemporaryDirectory() as directory:
        top = pathlib.Path(directory)
        try:
            tree = clone(tree, repository, top / 'clone')
            sdist = build('sdist', tree, top / 'sdist')
            unpacked = unpack(sdist, top / 'unpacked')
            from_git = wheel_files(build('wheel', tree, top / 'from-git'))
            from_sdist = wheel_files(
                build('wheel', unpacked, top / 'from-sdist'))
            exported = export(repository, top / 'exported')
            exported_sdist = build('sdist', exported, top / 'exported-sdist')
            exported_unpacked = unpack(exported_sdist, top / 'unpacked-too')
            from_export = wheel_files(
                build('wheel', exported_unpacked, top / 'from-export'))
        except subprocess.CalledProcessError as exc:
            sys.stderr.buffer.write(exc.stdout or b'')
            print(exc, file=sys.stderr)
            return 1
        for name in LEFT_OUT:
            repository.pop(name, None)
        in_sdist, in_exported_sdist = (
            {name: (root / name).read_bytes()
             for name in repository if (root / name).is_file()}
            for root in (unpacked, exported_unpacked))
        exported_name = f'nfv_sched-{release(exported)}.tar.gz'
    for contents in (repository, in_sdist, in_exported_sdist):
        contents[SETUP] = settings(contents[SETUP])

    data = {name: content for name, content in repository.items()
            if name.startswith(DATA_FOLDERS)}
    package = {name: content for name, content in repository.items()
               if name.startswith('nfv_sched/')}
    errors = different(sdist.name, repository, in_sdist)
    errors += different('source distribution of the exported tree',
                        repository, in_exported_sdist)
    if exported_sdist.name != exported_name:
        errors.append(
            f'exported tree: {exported_sdist.name}, not {exported_name}')
    for what, found in (('wheel of the clone', from_git),
                        ('wheel of the source distribution', from_sdist),
                        ('wheel of the exported tree', from_export)):
        errors += different(what, data, data_files(found))
        errors += different(what, package, found)
    # Each has all of the other: neither has more.
    errors += different(
        'wheel of the source distribution', from_git, from_sdist)
    errors += different(
        'wheel of the clone', from_sdist, from_git)
    for error in errors:
        print(error, file=sys.stderr)
    print(f'{sdist.name}: {len(repository)} files, {len(data)} of them in '
          f'etc/, {len(errors)} errors')
    return 1 if errors else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv))
