"""Prints what TensorBoard's own reader finds in a folder: one line per scalar, text and image."""
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.tensorflow_stub import io as tensorboard_io  # noqa: F401  (its record reader checks the CRCs)
from tensorboard.util import tensor_util

accumulator = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0, "tensors": 0, "images": 0})
accumulator.Reload()
tags = accumulator.Tags()
for tag in sorted(tags["scalars"]):
    for event in accumulator.Scalars(tag):
        print(f"scalar {tag} {event.step} {event.value!r} {event.wall_time:.3f}")
for tag in sorted(tags["tensors"]):
    plugin = accumulator.SummaryMetadata(tag).plugin_data.plugin_name
    for event in accumulator.Tensors(tag):
        print(f"{plugin} {tag} {event.step} {tensor_util.make_ndarray(event.tensor_proto)[0].decode()!r}")
for tag in sorted(tags["images"]):
    for event in accumulator.Images(tag):
        print(f"image {tag} {event.step} {event.width}x{event.height} {len(event.encoded_image_string)}")
