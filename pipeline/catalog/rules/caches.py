"""What shows that a cache in front of the storage fails, or that data comes in from another region too slowly."""

from typing import Final

from pipeline.catalog.faults import CACHE_LAYER_FAULT, CROSS_REGION_LAG
from pipeline.catalog.rule import Hold, Limit, Rule, View, metric

_MINUTE: Final = Hold(6, 50)

CACHES: tuple[Rule, ...] = (
    Rule(
        fault=CACHE_LAYER_FAULT,
        when=(Limit(metric("cache.workers.lost"), 1, 0),),
        says="{place} has lost {cache_workers_lost} of its workers, {cache_workers} are there",
        cleared="{place} has its {cache_workers} workers again",
        hold=Hold(2, 0.5),
        clear=Hold(2),
        entity="cache",
    ),
    Rule(
        fault=CACHE_LAYER_FAULT,
        when=(Limit(metric("cache.store.errors"), 10, 2, view=View.INCREASE),),  # a few are tried again, and nobody notices
        says="{value} requests of {place} to its store failed since the last reading",
        cleared="the store behind {place} answers again",
        hold=Hold(3, 10),
        clear=Hold(3, 20),
        entity="cache",
    ),
    Rule(
        fault=CACHE_LAYER_FAULT,
        when=(Limit(metric("cache.faults"), 1, 0, view=View.INCREASE),),
        says="the controller of {place} found it unwell {value} times since the last reading",
        cleared="the controller of {place} finds it well",
        hold=Hold(2),
        clear=Hold(3, 20),
        entity="cache",
    ),
    Rule(
        fault=CROSS_REGION_LAG,
        when=(Limit(metric("region_link.online"), 0, 1, above=False),),
        says="the other side of {place} cannot be reached: nothing is transferred",
        cleared="the other side of {place} can be reached again",
        hold=Hold(3, 20),
        clear=Hold(2),
        entity="link",
    ),
    Rule(
        fault=CROSS_REGION_LAG,
        when=(Limit(metric("region_link.backlog"), 1, 0, view=View.INCREASE),),
        says="{place} transfers less than comes in: {region_link_backlog} objects wait, and with every reading of a minute more",
        cleared="the backlog of {place} no longer grows: {region_link_backlog} objects wait",
        hold=_MINUTE,
        clear=_MINUTE,
        entity="link",
    ),
)
