# SPDX-License-Identifier: Apache-2.0
"""Options, texts, reasons and extra specs: what all else stands on."""
