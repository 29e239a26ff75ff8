# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""No module runs foreign data: no pickle, no eval, no shell, no YAML that makes objects."""

import ast

from robots import ROOT

MODULES = sorted(
    path
    for folder in ("dls_ik", "launch", "scripts", "underlay")
    for path in (ROOT / folder).rglob("*.py")
)
KERNELS = ROOT / "dls_ik" / "core" / "jit.py"
WARM_UP = ROOT / "dls_ik" / "warm_up.py"
UNDERLAY = ROOT / "underlay" / "build.py"
PLUGINS = ROOT / "dls_ik" / "solver" / "plugins.py"
READERS = {  # modules that make objects of bytes, or run them
    *("pickle", "cPickle", "_pickle", "dill", "cloudpickle", "jsonpickle", "joblib"),
    *("marshal", "shelve", "code", "codeop", "pty", "commands"),
}
CALLS = {
    *("eval", "exec", "compile", "__import__", "os.system", "os.popen", "os.startfile"),
    *("yaml.load", "yaml.load_all", "yaml.full_load", "yaml.unsafe_load", "yaml.Loader"),
    *("yaml.UnsafeLoader", "yaml.FullLoader", "tempfile.mktemp", "runpy.run_path"),
    *("subprocess.getoutput", "subprocess.getstatusoutput"),
    *("ET.parse", "ET.fromstring", "ET.XML", "ET.iterparse"),  # the first pass is by expat
}
SHELLS = ("os.exec", "os.spawn", "os.posix_spawn")


def name(node):
    """``a.b.c`` of a chain of names, else nothing."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def imported(node):
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]


def is_true(node):
    return not (isinstance(node, ast.Constant) and node.value is False)


def complaints_about_call(node):
    called = name(node.func)
    if called in CALLS or called.startswith(SHELLS):
        yield called
    keywords = {keyword.arg: keyword.value for keyword in node.keywords}
    for option in ("shell", "allow_pickle"):
        if option in keywords and is_true(keywords[option]):
            yield f"{called}({option}=...)"
    if called in ("np.load", "numpy.load") and "allow_pickle" not in keywords:
        yield f"{called} without allow_pickle=False"


def complaints(source):
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = imported(node)
            found += [each for each in names if each.partition(".")[0] in READERS or each in CALLS]
        elif isinstance(node, ast.Call):
            found += complaints_about_call(node)
    return found


def test_no_module_runs_foreign_data():
    assert len(MODULES) > 100
    assert ROOT / "dls_ik" / "model" / "dh.py" in MODULES
    found = {path: complaints(path.read_text(encoding="utf-8")) for path in MODULES}
    # The compiled kernels are our own, as those of numba's cache; a plug-in is a file that the user
    # asks to run: docs/security.md.
    allowed = {
        KERNELS: ["pickle"],
        PLUGINS: ["compile", "exec"],
        WARM_UP: ["pickle"],  # the name of a kernel, from the standard input of our own process
        UNDERLAY: ["ET.parse"],  # package.xml files of the underlay itself
    }
    assert {path: each for path, each in found.items() if each} == allowed


def test_unsafe_calls_are_detected():
    assert [source for source in FOUND if not complaints(source)] == []


FOUND = [
    "import pickle",
    "from marshal import loads",
    "def f():\n    import cloudpickle.compat",
    "eval(x)",
    "exec(x)",
    "os.system(x)",
    "from os import system",
    "os.execvp(x, y)",
    "subprocess.run(x, shell=True)",
    "subprocess.Popen(x, shell=flag)",
    "yaml.load(x)",
    "from yaml import unsafe_load",
    "np.load(x)",
    "np.load(x, allow_pickle=True)",
    "tempfile.mktemp()",
    "ET.fromstring(x)",
]
