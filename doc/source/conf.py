# SPDX-License-Identifier: Apache-2.0
"""Sphinx configuration of the documentation."""

import os
import sys

# The pages are about the source that they are part of.
_ROOT = os.path.abspath('../..')
sys.path[:0] = [_ROOT, os.path.abspath('../ext')]

project = 'nfv-sched'
author = 'The nfv-sched developers'
copyright = f'2026, {author}'

extensions = [
    'cliff.sphinxext',
    'nfv_sched_reference',
    'openstackdocstheme',
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

html_theme = 'openstackdocs'

# Everything the theme could want to know from git or the network is said
# here, so that the documentation builds from any copy of the source.
openstackdocs_repo_name = 'nfv-sched'
openstackdocs_auto_name = False
openstackdocs_auto_version = False
openstackdocs_pdf_link = False
openstackdocs_use_storyboard = False
html_theme_options = {
    'display_badge': False,
    'show_other_versions': False,
}
