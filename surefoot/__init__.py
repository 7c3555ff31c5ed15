"""Surefoot, seen from a training script: `from surefoot import StepMonitor`. Standard library only."""

from surefoot.hook.monitor import StepMonitor

__all__ = ["StepMonitor"]
__version__ = "0.1.0"
