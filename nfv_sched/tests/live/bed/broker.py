# SPDX-License-Identifier: Apache-2.0
"""RabbitMQ, and the port mapper of Erlang that it needs."""

import pathlib
import shutil
import socket

import kombu

from nfv_sched.tests.live.bed import errors
from nfv_sched.tests.live.bed import layout as bed_layout
from nfv_sched.tests.live.bed import ports
from nfv_sched.tests.live.bed import processes

# The ones in PATH change to the user of the package.
_PROGRAMS = pathlib.Path('/usr/lib/rabbitmq/bin')

_CONFIGURATION = """\
listeners.tcp.1 = {address}:{port}
default_user = {user}
default_pass = {password}
default_user_tags.administrator = true
default_permissions.configure = .*
default_permissions.read = .*
default_permissions.write = .*
loopback_users = none
log.console = true
log.console.level = warning
log.file = false
vm_memory_high_watermark.absolute = 1GB
disk_free_limit.absolute = 50MB
"""

# Threads that look for work all the time are no good on a small machine.
_ENVIRONMENT = """\
NODENAME=rabbit@localhost
CONFIG_FILE={etc}/rabbitmq
MNESIA_BASE={state}/mnesia
LOG_BASE={state}/log
ENABLED_PLUGINS_FILE={etc}/enabled_plugins
GENERATED_CONFIG_DIR={state}/config
PID_FILE={state}/pid
DIST_PORT={distribution}
SERVER_ADDITIONAL_ERL_ARGS="-kernel inet_dist_use_interface {{127,0,0,1}} \
+S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none"
"""


def services(layout: bed_layout.Layout) -> list[processes.Service]:
    """The port mapper and the broker, in the order of their start."""
    epmd = shutil.which('epmd')
    server = _PROGRAMS / 'rabbitmq-server'
    if not epmd or not server.exists():
        raise errors.BedError(
            'RabbitMQ is not installed; run tools/live-packages as root')
    environment = {
        **layout.environment(),
        'ERL_EPMD_ADDRESS': ports.ADDRESS,
        'ERL_EPMD_PORT': str(layout.ports['epmd']),
        'RABBITMQ_CONF_ENV_FILE': str(_etc(layout) / 'rabbitmq-env.conf'),
    }
    return [
        processes.Service(
            'epmd', [epmd], environment, layout.directory,
            url=f'{ports.ADDRESS}:{layout.ports["epmd"]}',
            ready=lambda: _answers(layout.ports['epmd'])),
        processes.Service(
            'rabbitmq', [str(server)], environment, layout.directory,
            url=f'{ports.ADDRESS}:{layout.ports["rabbitmq"]}',
            ready=lambda: _ready(layout)),
    ]


def prepare(layout: bed_layout.Layout) -> None:
    etc = _etc(layout)
    state = layout.state / 'rabbitmq'
    for directory in (etc, state, state / 'log'):
        directory.mkdir(exist_ok=True)
    (etc / 'enabled_plugins').write_text('[].\n')
    (etc / 'rabbitmq-env.conf').write_text(_ENVIRONMENT.format(
        etc=etc, state=state,
        distribution=layout.ports['rabbitmq-distribution']))
    configuration = etc / 'rabbitmq.conf'
    configuration.touch(mode=0o600)
    configuration.write_text(_CONFIGURATION.format(
        address=ports.ADDRESS, port=layout.ports['rabbitmq'],
        user=bed_layout.USER, password=layout.password))


def consumed(layout: bed_layout.Layout, queue: str) -> str | None:
    """Return why nobody takes messages from a queue; None if somebody does."""
    with _connection(layout) as connection:
        try:
            state = connection.channel().queue_declare(queue, passive=True)
        except connection.channel_errors:
            return f'there is no queue {queue}'
    return None if state.consumer_count else f'nobody listens to {queue}'


def _etc(layout: bed_layout.Layout) -> pathlib.Path:
    return layout.etc / 'rabbitmq'


def _answers(port: int) -> str | None:
    with socket.create_connection((ports.ADDRESS, port), timeout=5):
        return None


def _connection(layout: bed_layout.Layout) -> kombu.Connection:
    return kombu.Connection(
        layout.transport_url.replace('rabbit:', 'amqp:'), connect_timeout=5)


def _ready(layout: bed_layout.Layout) -> str | None:
    with _connection(layout) as connection:
        connection.connect()
    return None
