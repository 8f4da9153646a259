"""Read `checkpoint`: what checkpoint images cost."""

from typing import Final

from simctl.scenario.scalars import size
from simctl.scenario.shapes import Field, Record
from simctl.stepd.images import ImagesSpec

IMAGES: Final[Record[ImagesSpec]] = Record(
    what="checkpoint images",
    fields=(
        Field(
            name="bandwidth",
            shape=size("a size above 0 such as 10GiB", least=1),
            default=ImagesSpec().bandwidth,
            shown="1GiB",
            doc="Bytes a second, shared by all images that are written or read at a time.",
        ),
        Field(
            name="space",
            shape=size("a size such as 10TiB", least=0),
            default=ImagesSpec().space,
            shown="1TiB",
            doc="How many bytes all images together may take.",
        ),
    ),
    build=lambda values, _value, _reading: ImagesSpec(**values),
)
