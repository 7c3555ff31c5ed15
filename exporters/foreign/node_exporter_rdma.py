"""node_exporter's names of RDMA ports: the same table by which we give ours to those who look for theirs, read the other way."""

from typing import Final

from exporters.compat.node import NAMES, PREFIX
from exporters.foreign.names import Name, NameMap
from pipeline.catalog.metrics import RDMA_PORT

NODE_EXPORTER_RDMA: Final = (
    NameMap(
        "node_exporter",
        RDMA_PORT,
        {"port": ("{device}:{port}",)},
        tuple(Name(PREFIX + theirs, f"{RDMA_PORT.name}.{ours}") for ours, theirs in NAMES.items()),
    ),
)
