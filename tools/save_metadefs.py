#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the files in etc/nfv_sched/metadefs anew, by Nova's validators."""

import pathlib

from nfv_sched.ops.metadefs import metadefs

_FOLDER = pathlib.Path(
    __file__).resolve().parents[1] / 'etc' / 'nfv_sched' / 'metadefs'

for namespace in metadefs.namespaces():
    (_FOLDER / namespace.file).write_text(namespace.text())
