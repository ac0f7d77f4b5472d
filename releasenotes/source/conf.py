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
