# SPDX-License-Identifier: Apache-2.0
"""Goals of the strategies that fit none of Watcher's."""

import abc
import typing as ty

from watcher.decision_engine.goal import base
from watcher.decision_engine.goal.efficacy import base as efficacy_base
from watcher.decision_engine.goal.efficacy import indicators
from watcher.decision_engine.solution import efficacy


class Figure(indicators.IndicatorSpecification):
    """An indicator that is a number from 0."""

    schema = {'type': 'integer', 'minimum': 0}


class CapacityEfficacy(efficacy_base.EfficacySpecification):
    """Effect of moves on the number of new servers."""

    def get_indicators_specifications(self) -> list[Figure]:
        return [Figure(name=name, description=text) for name, text in (
            ('servers_wanted', 'New servers that are to fit.'),
            ('servers_before', 'New servers that fit now.'),
            ('servers_after', 'New servers that fit after the moves.'))]

    def get_global_efficacy_indicator(
            self, indicators_map: ty.Any) -> list[efficacy.Indicator]:
        return [efficacy.Indicator(
            name='servers_ratio', unit='%',
            description='Part of the new servers that fit after the moves.',
            value=min(100.0, 100.0 * indicators_map.servers_after
                      / indicators_map.servers_wanted))]


class BalanceEfficacy(efficacy_base.EfficacySpecification):
    """Effect of moves on agents of Neutron, or NUMA nodes."""

    def get_indicators_specifications(self) -> list[Figure]:
        return [Figure(name=name, description=text) for name, text in (
            ('imbalance_before', 'Largest difference between the loads of two '
             'agents of a kind; or CPUs of NUMA nodes that are too many or '
             'too few in use.'),
            ('imbalance_after', 'The same after the moves.'))]

    def get_global_efficacy_indicator(
            self, indicators_map: ty.Any) -> list[efficacy.Indicator]:
        before = indicators_map.imbalance_before
        return [efficacy.Indicator(
            name='imbalance_ratio', unit='%',
            description='Part of the imbalance that the moves take away.',
            value=100.0 * (before - indicators_map.imbalance_after) / before
            if before else 0.0)]


class NamedMixin:
    """Mixin of what Watcher finds by an entry point, its name."""

    NAME: str
    DISPLAY_NAME: str

    @classmethod
    def get_name(cls) -> str:
        return cls.NAME

    @classmethod
    def get_display_name(cls) -> str:
        return cls.DISPLAY_NAME

    get_translatable_display_name = get_display_name


class NFVGoal(NamedMixin, base.Goal, metaclass=abc.ABCMeta):
    EFFICACY: type[efficacy_base.EfficacySpecification]

    @classmethod
    def get_efficacy_specification(cls) -> efficacy_base.EfficacySpecification:
        return cls.EFFICACY()


class CapacityGoal(NFVGoal):
    NAME = 'nfv_capacity'
    DISPLAY_NAME = 'Capacity for servers of a flavor'
    EFFICACY = CapacityEfficacy


class AgentBalanceGoal(NFVGoal):
    NAME = 'nfv_agent_balance'
    DISPLAY_NAME = 'Balance of network agents'
    EFFICACY = BalanceEfficacy


class NodeBalanceGoal(NFVGoal):
    NAME = 'nfv_node_balance'
    DISPLAY_NAME = 'Even use of NUMA nodes'
    EFFICACY = BalanceEfficacy
