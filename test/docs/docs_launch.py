# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Arguments of launch files, read from their source: ``launch`` comes with ROS 2."""

import ast
import shlex

from docs_pages import ROOT


def check(command: str) -> None:
    """Whether ``ros2 launch dls_ik FILE NAME:=VALUE...`` has a file that knows the names."""
    _, _, package, file, *arguments = shlex.split(command)
    assert package == "dls_ik"
    names = known(file)
    for argument in arguments:
        name, sign, _ = argument.partition(":=")
        assert sign, f"{argument} is not NAME:=VALUE"
        assert name in names, f"{file} has no argument {name}, but {sorted(names)}"


def known(file: str) -> set[str]:
    """What a launch file declares, and those that it includes."""
    tree = ast.parse((ROOT / "launch" / file).read_text())
    strings = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    included = {text for text in strings if text.endswith(".launch.py") and text != file}
    names = {text for text in strings if text.isidentifier()}
    return names.union(*(known(each) for each in included))
