#!/usr/bin/env python3
"""Makes land.txt from `land-110m.json` of the npm package world-atlas: see README.md.

    python3 web/land/land.py < package/land-110m.json > web/land/land.txt
"""

import hashlib
import json
import sys

SOURCE = "world-atlas 2.0.2, land-110m.json"
SHA256 = "ead5f68119c49a9250902e7da303bcb209341bbb8fefe7369a439b48b704658a"
# A hundredth of a degree is a kilometre, which is less than the source is off.
UNITS = 100


def main():
    text = sys.stdin.buffer.read()
    found = hashlib.sha256(text).hexdigest()
    if found != SHA256:
        sys.exit(f"this is not {SOURCE}: its SHA-256 is {found}")
    lines = [line(ring) for ring in rings(json.loads(text))]
    print(f"# {SOURCE}, SHA-256 {SHA256}; licence in LICENSE.")
    print(f"# A ring on each line: longitude and latitude in 1/{UNITS} degrees, then the steps to the next points.")
    print("\n".join(lines))


def rings(topology):
    """The rings of all polygons, as points in degrees."""
    arcs = [points(arc, topology["transform"]) for arc in topology["arcs"]]
    for geometry in topology["objects"]["land"]["geometries"]:
        for polygon in geometry["arcs"]:
            for ring in polygon:
                joined = []
                for index in ring:
                    # One that is negative stands for an arc from its end to its beginning.
                    arc = arcs[index] if index >= 0 else arcs[~index][::-1]
                    joined += arc[1:] if joined else arc
                yield closed(unwound(joined))


def unwound(ring):
    """The ring without jumps at 180 degrees: it goes on beyond them."""
    found, turn = [ring[0]], 0
    for (before, _), (x, y) in zip(ring, ring[1:]):
        turn -= 360 * round((x - before) / 360)
        found.append((x + turn, y))
    west, east = min(x for x, _ in found), max(x for x, _ in found)
    turn = 360 * round((west + east) / 720)
    return [(x - turn, y) for x, y in found]


def closed(ring):
    """The ring without its last point, if that is its first. Otherwise it goes round the south pole, and through it."""
    if abs(ring[-1][0] - ring[0][0]) < 180:
        return ring[:-1]
    return [*ring, (ring[-1][0], -90), (ring[0][0], -90)]


def points(arc, transform):
    """The points of an arc, of which the file has the steps in units of its own."""
    (scale_x, scale_y), (first_x, first_y) = transform["scale"], transform["translate"]
    x = y = 0
    found = []
    for step_x, step_y in arc:
        x, y = x + step_x, y + step_y
        found.append((x * scale_x + first_x, y * scale_y + first_y))
    return found


def line(ring):
    rounded = [(round(x * UNITS), round(y * UNITS)) for x, y in ring]
    kept = [point for index, point in enumerate(rounded) if index == 0 or point != rounded[index - 1]]
    steps = [(x - before_x, y - before_y) for (before_x, before_y), (x, y) in zip(kept, kept[1:])]
    return " ".join(f"{x} {y}" for x, y in [kept[0], *steps])


if __name__ == "__main__":
    main()
