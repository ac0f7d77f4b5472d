# SPDX-License-Identifier: Apache-2.0
"""Load templates of HTML and SVG, which escape all that they insert."""

import typing as ty

import jinja2

from nfv_sched.base import strings


def environment(*packages: str) -> jinja2.Environment:
    """Return an environment of templates; earlier packages go first."""
    return jinja2.Environment(
        loader=jinja2.ChoiceLoader(list(map(jinja2.PackageLoader, packages))),
        autoescape=True, finalize=_visible, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True)


def _visible(value: ty.Any) -> ty.Any:
    """Escape control characters of a text: XML cannot have them."""
    if type(value) is str:
        return strings.line(value)
    return value
