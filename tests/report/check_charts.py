"""Parses every SVG in a folder as XML and decodes every PNG; prints name, size and what the SVG's texts say."""
import pathlib
import struct
import sys
import xml.etree.ElementTree as ElementTree
import zlib

for svg in sorted(pathlib.Path(sys.argv[1]).glob("*.svg")):
    root = ElementTree.parse(svg).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg", root.tag
    texts = ["".join(node.itertext()).strip() for node in root.iter("{http://www.w3.org/2000/svg}text")]
    title = root.findtext("{http://www.w3.org/2000/svg}title") or ""
    print(f"{svg.name} {root.get('viewBox')} [{title}] {'|'.join(texts)}")

for png in sorted(pathlib.Path(sys.argv[1]).glob("*.png")):
    data = png.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n", data[:8]
    at, pixels, seen = 8, b"", []
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        chunk = data[at + 8 : at + 8 + size]
        (crc,) = struct.unpack(">I", data[at + 8 + size : at + 12 + size])
        assert crc == zlib.crc32(kind + chunk), kind
        seen.append(kind)
        if kind == b"IHDR":
            width, height, depth, color = struct.unpack(">IIBB", chunk[:10])
        if kind == b"IDAT":
            pixels += chunk
        at += 12 + size
    assert seen[0] == b"IHDR" and seen[-1] == b"IEND", seen
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[color]
    rows = zlib.decompress(pixels)
    assert len(rows) == height * (1 + (width * channels * depth + 7) // 8), len(rows)
    print(f"{png.name} {width}x{height} {len(set(rows))} byte values")
