# SPDX-License-Identifier: Apache-2.0
"""The extra spec, for the validation of the Nova API."""

from nova.api.validation.extra_specs import base

from nfv_sched.base import extra_specs


def register():
    """The validators; called by ``nova-api``."""
    return [base.ExtraSpecValidator(
        name='nfvx:even_nodes',
        description='Whether the server runs on even host NUMA nodes only.',
        value={'type': str, 'enum': list(extra_specs.AFFINITIES)})]
