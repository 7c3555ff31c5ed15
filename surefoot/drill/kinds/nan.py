"""nan: a batch of one rank holds a NaN, so that the loss and, from the next step on, the model are NaN."""

from pipeline.catalog.faults import BY_NAME
from surefoot.drill import orders
from surefoot.drill.kinds.kind import Kind, Scene
from surefoot.drill.kinds.ordered import order, truth
from surefoot.drill.plan import Truth

LOSS_NAN = BY_NAME["loss_nan"]


def inject(scene: Scene) -> Truth:
    """One number of the batch."""
    return truth(scene, LOSS_NAN, order(scene, orders.NAN), f"a NaN in rank {scene.plan.rank}'s batch, the loss is NaN")


def remove(scene: Scene) -> str:
    """The batches are good again; the model stays what it has become."""
    orders.withdraw(scene.subject.out)
    return "the drill let the rank have good batches again"


NAN = Kind(name="nan", fault=LOSS_NAN, inject=inject, remove=remove)
