# SPDX-License-Identifier: Apache-2.0
"""Hand Watcher's account to another process."""

from collections.abc import Mapping

from keystoneauth1 import loading
from oslo_config import cfg

#: The group of watcher.conf with the account.
_GROUP = 'watcher_clients_auth'


def variables(conf: cfg.ConfigOpts) -> Mapping[str, str]:
    """Return the account of Watcher as OS_* variables.

    :raises cfg.Error: if an option of it is not valid
    :raises keystoneauth1.exceptions.MissingAuthPlugin: if there is none
    """
    # Registers the options of the plugin.
    loading.load_auth_from_conf_options(conf, _GROUP)
    group = conf[conf[_GROUP].auth_section or _GROUP]
    chosen = {'auth_type': group.auth_type, **{
        option.dest: group[option.dest]
        for option in loading.get_auth_plugin_conf_options(group.auth_type)}}
    session = conf[_GROUP]
    chosen.update(cacert=session.cafile, cert=session.certfile,
                  key=session.keyfile, region_name=conf.nova.region_name)
    if session.insecure:
        chosen['insecure'] = 'true'
    if conf.nova.valid_interfaces:
        chosen['interface'] = conf.nova.valid_interfaces[0]
    return {f'OS_{name.upper()}': str(value)
            for name, value in chosen.items() if value is not None}
