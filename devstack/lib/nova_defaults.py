# SPDX-License-Identifier: Apache-2.0
"""Print Nova's defaults of options that have several words.

usage: nova_defaults.py SECTION/OPTION...

One line each: section, option and words.
"""

import sys

from nova import conf

conf.CONF([], default_config_files=[], default_config_dirs=[])
for name in sys.argv[1:]:
    section, option = name.split('/')
    print(section, option, *conf.CONF[section][option])
