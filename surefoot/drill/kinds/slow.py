"""slow: a rank computes longer in every step than its peers, which wait for it."""

from pipeline.catalog.faults import BY_NAME
from surefoot.drill import orders
from surefoot.drill.kinds.kind import Kind, Scene
from surefoot.drill.kinds.ordered import order, truth
from surefoot.drill.plan import Truth

GPU_SLOW = BY_NAME["gpu_slow"]


def inject(scene: Scene) -> Truth:
    """Half as long again."""
    late = scene.plan.step_time / 2
    return truth(scene, GPU_SLOW, order(scene, orders.SLOW, late), f"rank {scene.plan.rank} computes {late:g} s longer in each step,")


def remove(scene: Scene) -> str:
    """As fast as before."""
    orders.withdraw(scene.subject.out)
    return "the drill let the rank compute as fast as before"


SLOW = Kind(name="slow", fault=GPU_SLOW, inject=inject, remove=remove)
