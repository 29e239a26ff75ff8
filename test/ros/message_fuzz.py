"""Requests with anything in them: good ones, of which some fields at any depth are changed."""

import math
from copy import deepcopy
from importlib import import_module

from hypothesis import strategies as st
from moveit_msgs.srv import GetPositionFK
from ros_arms import CURRENT, TIPS, fk_request, place, request

NAMES = ("", "/", *TIPS, "base", "left_arm", "both_arms", "left_wam_j2", "right_wam_link4", "table")
GOOD = (
    request(place(TIPS[0], left_wam_j2=0.7)),
    request(
        group_name="both_arms",
        ik_link_names=list(TIPS),
        pose_stamped_vector=[place(tip, "base", right_wam_j4=1.4) for tip in TIPS],
    ),
    fk_request(TIPS, "left_wam_link4"),
)
SIZES = (0, 1, 2, 3, 14, 1000, 10_000)
MANY, FEW = 1000, 3  # messages in a field of the request, and anything in fields of those
DEPTH = 6  # of the request itself; 0 is the deepest
LONG = ("x" * 20_000, "\u1234" * 5000)

# Times that are short, or refused: what is longer would be waited for.
SECONDS, NANOSECONDS = (-(2**31), -1, 0), (0, 1, 1000, 20_000_000)

numbers = st.one_of(
    st.floats(), st.sampled_from([0.0, 1.0, -1.0, 1e-320, 1e9, 1e300, math.nan, math.inf])
)
singles = st.floats(width=32)
text = st.one_of(
    st.sampled_from(NAMES),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20),
    st.sampled_from(["%s%n{0}", "../../etc", "'\"\\\n"]),
)
anything = st.one_of(text, st.sampled_from(LONG))


@st.composite
def requests(draw):
    """A request for IK or FK."""
    whole = deepcopy(draw(st.sampled_from(GOOD)))
    part = whole if isinstance(whole, GetPositionFK.Request) else whole.ik_request
    for _ in range(draw(st.integers(1, 4))):
        change(draw, part, DEPTH)
    return whole


def change(draw, message, depth):
    """Give one field of a message another value; of a message within, one of its fields."""
    kinds = message.get_fields_and_field_types()
    name = draw(st.sampled_from(sorted(kinds)))
    setattr(message, name, value(draw, kinds[name], getattr(message, name), name, depth))


def value(draw, kind, now, name, depth):
    if kind.startswith("sequence<"):
        item, _, bound = kind[9:-1].partition(", ")
        return sequence(draw, item, list(now), name, depth)[: int(bound or 2**31)]
    if kind.endswith("]"):
        return now
    if "/" in kind:
        return nested(draw, now, depth)
    return primitive(draw, kind, name, depth)


def nested(draw, message, depth):
    message = deepcopy(message)
    if type(message).__name__ == "Duration":
        message.sec = draw(st.sampled_from(SECONDS))
        message.nanosec = draw(st.sampled_from(NANOSECONDS))
    elif depth:
        for _ in range(draw(st.integers(1, 3))):
            change(draw, message, depth - 1)
    return message


def sequence(draw, kind, now, name, depth):
    """Another length of it, or another item in it."""
    if "/" in kind:
        fresh = nested(draw, now[0] if now else _message(kind), depth)
        most = MANY if depth == DEPTH else FEW
    else:
        fresh = primitive(draw, kind, name, depth)
        most = SIZES[-1] if depth >= DEPTH - 2 and fresh not in LONG else FEW
    size = draw(st.sampled_from([size for size in SIZES if size <= most]))
    if now and draw(st.booleans()):
        now[draw(st.integers(0, len(now) - 1))] = fresh
        return now
    return [fresh] * size


def _message(kind):
    package, _, name = kind.partition("/")
    return getattr(import_module(f"{package}.msg"), name)()


def primitive(draw, kind, name, depth):
    if kind == "string":
        words = anything if depth >= DEPTH - 2 else text
        return draw(st.one_of(st.sampled_from([*CURRENT]), words) if "joint" in name else words)
    if kind in ("double", "float"):
        return draw(numbers if kind == "double" else singles)
    if kind == "boolean":
        return draw(st.booleans())
    if kind in ("octet", "byte"):
        return bytes([draw(st.integers(0, 255))])
    bits = int(kind.lstrip("uint"))
    low = 0 if kind.startswith("u") else -(2 ** (bits - 1))
    return draw(st.integers(low, low + 2**bits - 1))
