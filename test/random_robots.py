# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Random robots for tests."""

from math import pi
from typing import NamedTuple

from hypothesis import strategies as st
from robots import joint, urdf

FREE = ("revolute", "continuous", "prismatic")


class RandomRobot(NamedTuple):
    """Random tree, and positions of its independent joints."""

    text: str
    links: tuple[str, ...]
    parents: tuple[int, ...]  # parents of links 1, 2, ...
    kinds: tuple[str, ...]  # kinds of the joints above links 1, 2, ...
    values: dict[str, float]  # joint positions by name

    def above(self, link):
        """Return the indices of the links from the child of the root down to a link."""
        return [] if link == 0 else [*self.above(self.parents[link - 1]), link]

    def moves(self, link):
        """Return whether there is a moving joint between the root and a link."""
        return any(self.kinds[i - 1] != "fixed" for i in self.above(link))


def _numbers(count, bound):
    return st.lists(st.floats(-bound, bound), min_size=count, max_size=count)


def _words(values):
    return " ".join(map(repr, values))


_axes = _numbers(3, 1.0).filter(lambda axis: sum(x * x for x in axis) > 1e-3)


@st.composite
def random_robots(draw, largest=8):
    """Draw trees with branches, any axes and origins, and joints of every supported kind."""
    parents, kinds, joints, values = [], [], [], {}
    for i in range(1, draw(st.integers(2, largest))):
        parents.append(draw(st.integers(max(0, i - 3), i - 1)))
        kinds.append(draw(st.sampled_from([*FREE, "fixed"])))
        masters = [f"j{k}" for k in range(1, i) if kinds[k - 1] != "fixed"]
        mimic = bool(masters) and kinds[-1] != "fixed" and draw(st.integers(0, 3)) == 0
        detail = f'<origin xyz="{_words(draw(_numbers(3, 1.0)))}" '
        detail += f'rpy="{_words(draw(_numbers(3, pi)))}"/>'
        detail += '<limit lower="-60" upper="60" effort="1" velocity="1"/>'
        if mimic:
            scale, shift = draw(st.floats(-2.0, 2.0)), draw(st.floats(-1.0, 1.0))
            master = draw(st.sampled_from(masters))
            detail += f'<mimic joint="{master}" multiplier="{scale!r}" offset="{shift!r}"/>'
        elif kinds[-1] != "fixed":
            values[f"j{i}"] = draw(st.floats(-3.0, 3.0))
        axis = _words(draw(_axes))
        joints.append(joint(f"j{i}", kinds[-1], f"l{parents[-1]}", f"l{i}", detail, axis))
    links = tuple(f"l{i}" for i in range(len(parents) + 1))
    order = draw(st.permutations(joints))
    text = urdf(" ".join(links), *order)
    return RandomRobot(text, links, tuple(parents), tuple(kinds), values)
