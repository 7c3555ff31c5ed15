"""The chassis around a board, as its management controller tells it."""

from pipeline.catalog.metric import F64, U8, U32, Family, G, Metric

CHASSIS = Family(
    "chassis",
    ("node", "chassis"),
    "A chassis with power supplies and fans",
    (
        Metric("chassis.power", "W", G, F64, 0, 1e6, "Power drawn"),
        Metric("chassis.power.limit", "W", G, F64, 0, 1e6, "Power that it may draw"),
        Metric("chassis.inlet.temperature", "Cel", G, F64, -50, 150, "Temperature of the air that comes in"),
        Metric("chassis.fan.speed", "Hz", G, F64, 0, 1e4, "Turns a second of the slowest fan"),
        Metric("chassis.fan.duty", "1", G, F64, 0, 1, "Speed of the slowest fan, of its full speed"),
        Metric("chassis.fans_failed", "1", G, U32, 0, 1000, "Fans that the controller does not call well"),
        Metric("chassis.healthy", "1", G, U8, 0, 1, "1 where the controller calls the chassis well"),
    ),
)
