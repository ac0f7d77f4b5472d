# SPDX-License-Identifier: Apache-2.0
"""A page in Debian's Chromium, without a screen.

With NFV_SCHED_SCREENSHOTS=FOLDER, pictures of all pages are left there.
"""

import os
import pathlib
import shutil

import fixtures
from selenium import webdriver

from nfv_sched.tests import base

_MEASURE = pathlib.Path(__file__).with_name('measure.js').read_text(
    encoding='utf-8')
_SHOTS = os.environ.get('NFV_SCHED_SCREENSHOTS')

#: What is measured, see ``measure.js``.
CHECKS = ('overlaps', 'overflow', 'texts', 'contrast')

WIDE, NARROW = 1280, 360  # pixels


class BrowserTestCase(base.TestCase):
    """A test that looks at pages, in one browser for all of its class."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which('chromium')
        for argument in ('--headless=new', '--no-sandbox', '--disable-gpu',
                         '--hide-scrollbars', '--disable-dev-shm-usage'):
            options.add_argument(argument)
        options.set_capability('goog:loggingPrefs', {'browser': 'ALL'})
        cls.browser = webdriver.Chrome(
            options=options, service=webdriver.ChromeService(
                shutil.which('chromedriver')))
        cls.addClassCleanup(cls.browser.quit)
        cls.browser.set_page_load_timeout(120)

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path)

    def look(self, width=WIDE, scheme='light', media='screen'):
        command = self.browser.execute_cdp_cmd
        command('Emulation.setDeviceMetricsOverride', dict(
            width=width, height=900, deviceScaleFactor=1, mobile=False))
        command('Emulation.setEmulatedMedia', dict(media=media, features=[
            dict(name='prefers-color-scheme', value=scheme)]))

    def assertFocused(self, element):
        """What has the focus is in sight, and has an outline."""
        self.assertEqual(['solid', '3px', True], self.browser.execute_script(
            """
            const style = getComputedStyle(arguments[0]);
            const box = arguments[0].getBoundingClientRect();
            return [style.outlineStyle, style.outlineWidth,
                    box.left >= 0 && box.top >= 0 &&
                    box.bottom <= innerHeight];""", element))

    def wrong(self, check):
        return self.browser.execute_script(_MEASURE, check)

    def assert_well(self, what, checks=CHECKS):
        # What is out of sight is not laid out otherwise.
        self.browser.execute_script(
            'document.querySelectorAll("section").forEach('
            'part => part.style.contentVisibility = "visible")')
        for check in checks:
            self.assertEqual([], self.wrong(check), f'{what}: {check}')

    def shot(self, what):
        if _SHOTS:
            self.browser.save_screenshot(
                str(pathlib.Path(_SHOTS) / f'{what.replace(" ", "-")}.png'))

    def run_script(self, script):
        return self.browser.execute_script(f'return {script}')
