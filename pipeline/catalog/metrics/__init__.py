"""Every metric, once: name, unit, kind, column type, valid range and help on one line.

A *family* is one wide table: a row is one device's readings at one time. The column is the metric's
name without its family, dots as underscores. The table, its view, the OTLP message and the
Prometheus page are all generated from here.
"""

from pipeline.catalog.metric import ColumnType as ColumnType
from pipeline.catalog.metric import Family as Family
from pipeline.catalog.metric import Kind as Kind
from pipeline.catalog.metric import Metric as Metric
from pipeline.catalog.metrics.agent import AGENT as AGENT
from pipeline.catalog.metrics.agent import SENDER as SENDER
from pipeline.catalog.metrics.host import CGROUP as CGROUP
from pipeline.catalog.metrics.host import HOST as HOST
from pipeline.catalog.metrics.storage import DISK as DISK
from pipeline.catalog.metrics.storage import MOUNT as MOUNT

FAMILIES: tuple[Family, ...] = (HOST, MOUNT, DISK, CGROUP, AGENT, SENDER)
BY_NAME: dict[str, tuple[Family, Metric]] = {m.name: (f, m) for f in FAMILIES for m in f.metrics}
