"""openpi-client's own packing and resizing, for tests/serve/peer_test.cpp.

peer.py msgpack FILE OUT: reads FILE, looks at what is in it, writes the same value again.
peer.py resize FILE HEIGHT WIDTH OUT: the picture in FILE as openpi's LIBERO example sends it.
"""
import sys

import numpy as np
from openpi_client import image_tools, msgpack_numpy

if sys.argv[1] == "msgpack":
    value = msgpack_numpy.unpackb(open(sys.argv[2], "rb").read())
    assert value["actions"].dtype == np.float32 and value["actions"].shape == (1, 3)
    assert value["actions"].tolist() == [[1.0, -2.5, float(np.float32(3e30))]]
    assert value["observation/state"].tolist() == [0.1, 0.2]
    assert value["observation/image"].dtype == np.uint8 and value["observation/image"].tolist() == [[[0, 255, 7], [8, 9, 10]]]
    assert value["prompt"] == "öffne die Schublade" and value["numbers"] == [-1, 5, 1.25, True, None]
    open(sys.argv[3], "wb").write(msgpack_numpy.packb(value))
else:
    height, width = int(sys.argv[3]), int(sys.argv[4])
    picture = np.fromfile(sys.argv[2], np.uint8).reshape(height, width, 3)
    image_tools.convert_to_uint8(image_tools.resize_with_pad(picture, 224, 224)).tofile(sys.argv[5])
