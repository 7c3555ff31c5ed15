"""What the kinds share that the training brings about itself, on order."""

import time
from typing import Final

from pipeline.catalog.fault import Fault
from surefoot.drill import orders
from surefoot.drill.inject import Rank, await_step, place_of
from surefoot.drill.kinds.kind import Scene
from surefoot.drill.orders import Begun, Order
from surefoot.drill.plan import NotCarriedOut, Truth

_OBEY_SECONDS: Final = 30.0
_LOOK_SECONDS: Final = 0.01


def order(scene: Scene, what: str, amount: float = 0.0) -> tuple[Rank, Begun]:
    """Wait for the step of the plan, order `what`, and wait until it is being done."""
    plan = scene.plan
    rank = await_step(plan, scene.stack, scene.subject, scene.pause)
    orders.give(scene.subject.out, Order(what, plan.rank, amount))
    deadline = time.monotonic() + _OBEY_SECONDS
    while (begun := orders.begun(scene.subject.out)) is None:
        if scene.subject.ended or time.monotonic() > deadline:
            raise NotCarriedOut(f"rank {plan.rank} did not do what the drill asked of it")
        scene.pause(_LOOK_SECONDS)
    return rank, begun


def truth(scene: Scene, fault: Fault, ordered: tuple[Rank, Begun], what: str) -> Truth:
    """The rank's fault, from the step on in which it began."""
    rank, begun = ordered
    return Truth(begun.at, rank.attempt, place_of(fault, scene.plan, scene.stack), "forward", fault, f"{what} from step {begun.step} on")
