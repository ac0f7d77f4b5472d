# SPDX-License-Identifier: Apache-2.0
"""Sphinx configuration of the documentation."""

import os
import subprocess
import sys

# The pages are about the source that they are part of.
_ROOT = os.path.abspath('../..')
sys.path[:0] = [_ROOT, os.path.abspath('../ext')]

# The pages offer them for download.
subprocess.run([sys.executable, '-W', 'ignore', os.path.join(
    _ROOT, 'tools', 'json-schemas'), os.path.abspath('schemas')], check=True,
    env={**os.environ, 'PYTHONPATH': _ROOT})

project = 'nfv-sched'
author = 'The nfv-sched developers'
copyright = f'2026, {author}'

extensions = [
    'cliff.sphinxext',
    'nfv_sched_reference',
    'oslo_config.sphinxconfiggen',
    'oslo_config.sphinxext',
]

config_generator_config_file = [
    (os.path.join(_ROOT, 'doc', 'source', 'configuration',
                  'config-generator.conf'),
     'configuration/_generated/nfv_sched'),
]

autoprogram_cliff_application = 'nfv-sched'

master_doc = 'index'
exclude_patterns = ['configuration/_generated']
add_module_names = False
pygments_style = 'native'
# Two dashes begin an option.
smartquotes_action = 'qe'

html_theme = 'furo'
html_title = project
html_static_path = ['_static']
html_css_files = ['nfv-sched.css']
html_copy_source = False
html_theme_options = {
    'navigation_with_keys': True,
    'top_of_page_buttons': [],
}

# The pages of the commands, without what links to the rest.
man_pages = [
    ('cli/nfv-sched', 'nfv-sched',
     'answer questions about an OpenStack cloud', author, 1),
    ('cli/nfv-sched-status', 'nfv-sched-status',
     'check whether nfv-sched is set up so that it works', author, 1),
    ('cli/nfv-sched-ledger', 'nfv-sched-ledger',
     'keep the limits of hosts in Placement', author, 8),
]
