# SPDX-License-Identifier: Apache-2.0

import configparser
import os
import pathlib
import subprocess

import setuptools

ROOT = pathlib.Path(__file__).resolve().parent


def git(*arguments):
    """Return the lines that git prints, or none if it fails."""
    try:
        return subprocess.run(
            ['git', *arguments], cwd=ROOT, check=True, text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        return []


def version():
    """Return the version where pbr cannot tell it, else None.

    pbr takes it from PKG-INFO of a source distribution, or from git.
    """
    if (ROOT / 'PKG-INFO').exists():
        return None
    config = configparser.ConfigParser(interpolation=None)
    config.read(ROOT / 'setup.cfg', encoding='utf-8')
    release = config['metadata']['version']
    top = git('rev-parse', '--show-toplevel', 'HEAD')
    # An exported tree may be inside the clone of another project.
    if not top or not os.path.samefile(top[0], ROOT):
        return release
    # NOTE: Of a single commit, such as in a clone of depth 1, pbr 7.1 says
    # 0.0.0: it counts the commits after the first.
    if not git('rev-parse', '--verify', '--quiet', 'HEAD~1') and (
            not git('describe', '--tags', '--exact-match')):
        return f'{release}.dev0'
    return None


if value := version():
    os.environ.setdefault('PBR_VERSION', value)

setuptools.setup(setup_requires=['pbr>=6.1.1'], pbr=True)
