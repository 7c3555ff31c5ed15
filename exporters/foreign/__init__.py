"""The names of other programs that the catalogue knows by its own, a file for each program and its line here."""

from typing import Final

from exporters.foreign.caches import CACHES
from exporters.foreign.dcgm import DCGM
from exporters.foreign.names import Name as Name
from exporters.foreign.names import NameMap as NameMap
from exporters.foreign.node_exporter import NODE_EXPORTER
from exporters.foreign.node_exporter_rdma import NODE_EXPORTER_RDMA
from exporters.foreign.switches import SWITCHES
from exporters.foreign.vllm import VLLM

NAME_MAPS: Final[tuple[NameMap, ...]] = (*NODE_EXPORTER, *NODE_EXPORTER_RDMA, *DCGM, *VLLM, *CACHES, *SWITCHES)
