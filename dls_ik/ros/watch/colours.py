"""Colours that tell the state."""

from std_msgs.msg import ColorRGBA

from dls_ik.servo.state import ServoState

GREEN, YELLOW, ORANGE = (0.2, 0.8, 0.3), (0.95, 0.85, 0.2), (1.0, 0.55, 0.1)
RED, BLUE, GREY = (0.9, 0.15, 0.15), (0.25, 0.5, 1.0), (0.6, 0.6, 0.6)

_OF_CODE = {0: GREEN, 6: YELLOW, -1: RED}  # all others have to do with singularities
_OF_STATE = {
    ServoState.WAITING: GREY,
    ServoState.PAUSED: GREY,
    ServoState.STALE: GREY,
    ServoState.JOINT_MOTION: BLUE,
}


def colour_of(state: ServoState, opacity: float = 1.0) -> ColorRGBA:
    """Green: fine; blue: joint motion; grey: none asked for; yellow, orange: held up; red: not."""
    red, green, blue = _OF_STATE.get(state) or _OF_CODE.get(state.code, ORANGE)
    return ColorRGBA(r=red, g=green, b=blue, a=opacity)
