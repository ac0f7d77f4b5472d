# SPDX-License-Identifier: Apache-2.0
"""Sphinx configuration of the release notes."""

project = 'nfv-sched Release Notes'
author = 'The nfv-sched developers'
copyright = f'2026, {author}'

extensions = [
    'openstackdocstheme',
    'reno.sphinxext',
]

master_doc = 'index'
pygments_style = 'native'

# Notes of all versions are on one site.
version = ''
release = ''

html_theme = 'openstackdocs'
openstackdocs_repo_name = 'nfv-sched'
openstackdocs_auto_name = False
openstackdocs_auto_version = False
html_theme_options = {
    'display_badge': False,
    'show_other_versions': False,
}
