# SPDX-License-Identifier: Apache-2.0
"""Sphinx configuration of the release notes."""

project = 'nfv-sched Release Notes'
author = 'The nfv-sched developers'
copyright = f'2026, {author}'

extensions = [
    'reno.sphinxext',
]

master_doc = 'index'
pygments_style = 'native'

# Notes of all versions are on one site.
version = ''
release = ''

html_theme = 'furo'
html_title = project
