# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Opening of the viewer page from Python, in a browser or a notebook, without blocking."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import webbrowser
from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from dls_ik.core.types import Array
from dls_ik.errors import DlsIkError
from dls_ik.model.robot import RobotModel
from dls_ik.solver.task import Tasks

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from dls_ik.scene.planning_scene import PlanningScene
    from dls_ik.viewer.presets import Preset
    from dls_ik.viewer.session import Session

UPDATE_RATE = 60.0  # [Hz] rate of the steps of the arms
NOTEBOOK_HEIGHT = 600  # [px] height of the page in a notebook
PAGE_STOP_TIMEOUT = 10.0  # [s] maximum time to close the page
MAX_REPLAY_SPEED = 10.0  # maximum replay speed of a path, relative to real time
FRAME = (
    "<iframe src='{url}' width='100%' height='{height}' style='border:1px solid #8884'></iframe>"
    "<div><a href='{url}' target='_blank'>{name} in a page of its own</a></div>"
)


class ViewerError(DlsIkError):
    """A viewer page that cannot be opened or used."""


class Viewer:
    """Open viewer page, returned by :func:`open_viewer`.

    If a viewer is the last expression of a notebook cell, the notebook shows the page inline.

    Attributes:
        robot: Robot of the page.
        url: Address of the page.
    """

    def __init__(
        self,
        robot: RobotModel,
        make_session: Callable[[Callable[[Array], Array]], tuple[Session, Sequence[Preset]]],
        host: str,
        port: int,
        is_dark: bool,
        note: str,
        is_compact: bool,
    ) -> None:
        from dls_ik.viewer.page import serve
        from dls_ik.viewer.server import open_server
        from dls_ik.viewer.shapes import described_shapes

        self.robot = robot
        self._session: Session | None = None
        self._error: BaseException | None = None
        self._begun, self._ended = threading.Event(), threading.Event()
        shapes = described_shapes(robot)
        server = open_server(host, port, f"dls-ik: {robot.name}", is_framed=True)
        self.url = f"http://localhost:{server.get_port()}"

        def run() -> None:
            try:
                serve(
                    server, robot, shapes, make_session, UPDATE_RATE, None, self._ended, is_dark,
                    note, self._begin, is_compact,
                )  # fmt: skip
            except BaseException as error:  # noqa: BLE001  raised again in the calling thread
                self._error = error
            finally:
                self._ended.set()
                self._begun.set()

        self._thread = threading.Thread(target=run, name="viewer", daemon=True)
        self._thread.start()
        self._begun.wait()  # kernels may be compiled, which takes minutes on a busy machine
        if self._error is not None:
            raise self._error
        atexit.register(self.close)

    def __repr__(self) -> str:
        """Return the name of the robot and the address of the page as text."""
        return f"Viewer({self.robot.name}, {self.url if self.is_open else 'closed'})"

    def _repr_html_(self) -> str:
        """Return HTML that shows the page inline in a notebook."""
        if not self.is_open:
            return escape(repr(self))
        return FRAME.format(url=self.url, height=NOTEBOOK_HEIGHT, name=escape(self.robot.name))

    def __enter__(self) -> Viewer:
        """Return this viewer."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the page."""
        self.close()

    @property
    def is_open(self) -> bool:
        """Whether the page is served."""
        return not self._ended.is_set()

    @property
    def session(self) -> Session:
        """Session that controls the arms on the page.

        Raises:
            ViewerError: If the page is closed; the cause is the error that closed the page, if any.
        """
        if self._session is None or not self.is_open:
            reason = "" if self._error is None else f" by an error ({self._error!r})"
            raise ViewerError(
                f"the page is closed{reason}: dls_ik.viewer.open(robot) opens another one"
            ) from self._error
        return self._session

    @property
    def q(self) -> Array:
        """Current joint positions (n,) [rad or m] of the first arm.

        Raises:
            ViewerError: If the page is closed.
        """
        return self.session.joint_values

    def show(self, q: ArrayLike) -> Viewer:
        """Set the joint positions of all arms without motion; stop a preset or replay.

        Args:
            q: Joint positions [rad or m], an array (n,) or a mapping by joint name.

        Raises:
            JointValueError: If `q` does not have n values, or they are not finite.
            ViewerError: If the page is closed.
        """
        self.session.place(self.robot.validated_one(q))
        return self

    def play(self, times: ArrayLike, qs: ArrayLike, speed: float = 1.0) -> Viewer:
        """Replay a joint path in a loop instead of the arms.

        Args:
            times: (b,) increasing times [s].
            qs: (b, n) joint positions [rad or m].
            speed: Factor of the replay speed; values below 1 are slow motion.

        Raises:
            PathFileError, JointValueError: If :func:`dls_ik.viewer.replay.joint_path` raises it.
            ViewerError: If the page is closed, or `speed` is not valid.
        """
        from dls_ik.viewer.replay import joint_path

        if not 0.0 < speed <= MAX_REPLAY_SPEED:
            raise ViewerError(
                f"speed must be above 0 and at most {MAX_REPLAY_SPEED:g}; got {speed!r}"
            )
        self.session.show_path(joint_path(self.robot, times, qs))
        self.session.speed = float(speed)
        return self

    def follow(self, T: ArrayLike) -> Viewer:
        """Set the target of the arms, as if a person dragged it there.

        Args:
            T: T_base_tip (4, 4), or (k, 4, 4) for k tips.

        Raises:
            PoseError: If `T` is not a pose of this shape.
            ViewerError: If the page is closed.
        """
        from dls_ik.solver.poses import checked_poses

        k = len(self.robot.tips)
        poses = checked_poses(T, k)
        self.session.drag_target(poses.copy() if k > 1 else poses[0].copy())
        return self

    def wait(self) -> None:
        """Block until the page is closed or Ctrl-C is pressed; useful at the end of a script.

        Raises:
            ViewerError: If an error closed the page.
        """
        with contextlib.suppress(KeyboardInterrupt):
            self._ended.wait()
        self.close()
        if self._error is not None:
            raise ViewerError(f"an error closed the page: {self._error!r}") from self._error

    def close(self) -> None:
        """Close the page; closing it again has no effect."""
        self._ended.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(PAGE_STOP_TIMEOUT)
        atexit.unregister(self.close)
        if _open.get(self.robot) is self:
            _open.pop(self.robot, None)

    def _begin(self, session: Session) -> None:
        self._session = session
        self._begun.set()


_open: dict[RobotModel, Viewer] = {}  # open pages, which show and play reuse for equal robots


def open_viewer(
    robot: RobotModel,
    methods: str | Sequence[str] = (),
    task: Tasks = None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    browser: bool | None = None,
    dark: bool = False,
    presets: bool = True,
    scene: PlanningScene | None = None,
) -> Viewer:
    """Open the viewer page for a robot, as ``dls-ik view`` does; another thread serves the page.

    Args:
        robot: Robot to show.
        methods: Up to four names of methods, see :func:`dls_ik.method_names`; one arm for each.
        task: See :class:`dls_ik.IkSolver`; default: poses, or positions if the robot has too few
            joints for poses. The first level of a :class:`dls_ik.TaskStack` must be the task of the
            tip alone; the page can change the other levels.
        host: Name or address of this machine.
        port: Port; 0 for any unused port.
        browser: Whether to open a browser; default: True if there is a screen and the program is
            not a notebook.
        dark: Whether the page is dark at first.
        presets: Whether to compute presets, which takes about a second; without presets the plots
            are collapsed at first.
        scene: Scene of the robot. The arms avoid collisions; the page shows the objects of the
            scene, and a person can drag them.

    Raises:
        ViewerError: If viser is not installed, or there are too many methods.
        PortError: If the port is in use, or the host is not an address of this machine.
        MethodError, OptionError: If :class:`dls_ik.IkSolver` raises it.
    """
    names = [methods] if isinstance(methods, str) else [*methods]
    try:
        from dls_ik.viewer.session import MAX_ARMS, default_task, local_session
        from dls_ik.viewer.source import check_follows

        if len(names) > MAX_ARMS:
            raise ViewerError(f"methods must be at most {MAX_ARMS} names; got {len(names)}")
        for name in names:
            check_follows(name)
        rows = default_task(robot) if task is None else task
        note = "" if rows is task else "only the position of the target counts: too few joints"
        viewer = Viewer(
            robot,
            lambda clearance: local_session(robot, names, rows, clearance, presets, scene),
            host, port, dark, note, not presets,
        )  # fmt: skip
    except ImportError as error:
        missing = error.name or error
        raise ViewerError(f"{missing} is missing: pip install 'dls-ik[viewer]'") from error
    if browser is None:
        browser = has_screen() and not _in_notebook()
    if browser:
        webbrowser.open(viewer.url)
    return viewer


def show(robot: RobotModel, q: ArrayLike | None = None, **options: Any) -> Viewer:
    """Show a robot at given joint positions on a web page; a notebook shows the page inline.

    Calls for equal robots use the same page. The page needs ``pip install 'dls-ik[viewer]'``.

    Args:
        robot: Robot to show.
        q: Joint positions (n,) [rad or m]. None keeps the joint positions of an open page; on a new
            page, the robot is in a configuration far from singularities.
        options: Options of :func:`open_viewer`, used only if a new page is opened.

    Raises:
        ViewerError: If viser is not installed, or the page cannot be opened.
        JointValueError: If the joint positions are not valid.
    """
    viewer = _page_of(robot, options)
    return viewer if q is None else viewer.show(q)


def play(
    robot: RobotModel, times: ArrayLike, qs: ArrayLike, speed: float = 1.0, **options: Any
) -> Viewer:
    """Replay a joint path in a loop on the web page of a robot, see :func:`show`.

    Args:
        robot: Robot to show.
        times: (b,) increasing times [s].
        qs: (b, n) joint positions [rad or m].
        speed: Factor of the replay speed; values below 1 are slow motion.
        options: Options of :func:`open_viewer`, used only if a new page is opened.

    Raises:
        ViewerError: If viser is not installed, the page cannot be opened, or `speed` is not valid.
        PathFileError: If the path is not valid.
    """
    return _page_of(robot, options).play(times, qs, speed)


def _page_of(robot: RobotModel, options: dict[str, Any]) -> Viewer:
    viewer = _open.get(robot)
    if viewer is None or not viewer.is_open:
        viewer = _open[robot] = open_viewer(robot, **{"presets": False, **options})
    return viewer


def has_screen() -> bool:
    """Return whether this machine has a graphical display for a browser.

    Without one, the module webbrowser would open a text browser such as lynx in the terminal.
    """
    screens = map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY"))
    return sys.platform in ("darwin", "win32") or any(screens)


def _in_notebook() -> bool:
    """Return whether this process is a Jupyter kernel, which shows the page inline."""
    interactive = sys.modules.get("IPython")
    shell = interactive.get_ipython() if interactive is not None else None
    return shell is not None and hasattr(shell, "kernel")
