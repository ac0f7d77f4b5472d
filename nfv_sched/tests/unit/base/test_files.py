# SPDX-License-Identifier: Apache-2.0
"""JSON of files that anybody may have made."""

import json

from nfv_sched.base import files
from nfv_sched.tests import base


class JSONTest(base.TimedTestCase):

    def test_parsed(self):
        for content in (b'["\xc3\xa9"]', b'\xef\xbb\xbf["\xc3\xa9"]',
                        b'["\\u00e9"]'):
            self.assertEqual(['\xe9'], files.parse_json(content))
        self.assertEqual(['\U0001f600'],
                         files.parse_json(b'["\\ud83d\\ude00"]'))

    def test_refused(self):
        """Halves of characters, and other encodings than UTF-8."""
        for content in (b'["\\ud800"]', b'["\xed\xa0\x80"]',
                        json.dumps(['a']).encode('utf-16'),
                        json.dumps(['a']).encode('utf-16-le'),
                        b'[NaN]', b'', b'\xef\xbb\xbf'):
            self.assertRaises(ValueError, files.parse_json, content)
