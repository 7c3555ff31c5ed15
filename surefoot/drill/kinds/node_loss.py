"""node-loss: a node's cable is cut and all its processes are killed at once; a spare node takes its place."""

from pipeline.catalog.faults import HOST_DOWN
from pipeline.clock import utcnow
from surefoot.drill.inject import await_step, place_of
from surefoot.drill.kinds.kind import Kind, Scene
from surefoot.drill.plan import Located, Truth


def inject(scene: Scene) -> Truth:
    """The node of the plan's rank."""
    rank = await_step(scene.plan, scene.stack, scene.subject, scene.pause)
    name = place_of(HOST_DOWN, scene.plan, scene.stack).node
    host = next(one for one in scene.hosts if one.name == name)
    at = utcnow()
    host.lose()
    what = f"{name} lost its power, and rank {scene.plan.rank} with it"
    return Truth(at, rank.attempt, Located(HOST_DOWN.layer, name, None), rank.cell.phase, HOST_DOWN, what)


NODE_LOSS = Kind(name="node-loss", fault=HOST_DOWN, inject=inject, nodes=2, spares=1)
