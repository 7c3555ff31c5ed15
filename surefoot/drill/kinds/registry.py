"""All kinds of drills."""

from typing import Final

from surefoot.drill.kinds.disk_full import DISK_FULL
from surefoot.drill.kinds.hang import HANG
from surefoot.drill.kinds.kill import KILL
from surefoot.drill.kinds.kind import Kind
from surefoot.drill.kinds.nan import NAN
from surefoot.drill.kinds.node_loss import NODE_LOSS
from surefoot.drill.kinds.oom import OOM
from surefoot.drill.kinds.read_only import READ_ONLY
from surefoot.drill.kinds.slow import SLOW

KINDS: Final[tuple[Kind, ...]] = (KILL, HANG, NODE_LOSS, DISK_FULL, READ_ONLY, OOM, SLOW, NAN)
BY_NAME: Final = {kind.name: kind for kind in KINDS}
