# SPDX-License-Identifier: Apache-2.0

from nfv_sched.nova import concurrency

# Test modules import Nova before the base class of tests, and with it
# oslo.service, which then has chosen eventlet up to Nova 32.
concurrency.native_threads()
