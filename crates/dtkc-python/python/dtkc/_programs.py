"""The programs that come with the package, and what they need to run."""

import functools
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

from ._dtkc import Error

_HERE = Path(__file__).parent


@functools.cache
def onnxruntime():
    """The library inside the package `onnxruntime`; nothing where the user has named another."""
    if os.environ.get("ORT_DYLIB_PATH"):
        return None
    found = importlib.util.find_spec("onnxruntime")
    if found is None or not found.submodule_search_locations:
        return None
    # Found, not imported: its Python half would be loaded for nothing.
    folder = Path(next(iter(found.submodule_search_locations))) / "capi"
    names = ("libonnxruntime.so*", "libonnxruntime*.dylib", "onnxruntime.dll")
    libraries = [path for name in names for path in sorted(folder.glob(name))]
    return str(libraries[0]) if libraries else None


def models():
    """The folder of the bundled models, where the package has one."""
    folder = _HERE / "models"
    return str(folder) if folder.is_dir() else None


def offer_models():
    """From now on the bundled models are found in this process by their names, unless the user has named another folder."""
    if models() and not os.environ.get("DTKC_MODELS"):
        os.environ["DTKC_MODELS"] = models()


def environment():
    """What a program's environment is: ours, with the library and the models of the package where none are named."""
    found = dict(os.environ)
    for name, value in (("ORT_DYLIB_PATH", onnxruntime()), ("DTKC_MODELS", models())):
        if value and not found.get(name):
            found[name] = value
    return found


def find(name):
    """Where a program is: in the package, else in the folder DTKC_BIN, else on the path."""
    ending = ".exe" if os.name == "nt" else ""
    for folder in (_HERE / "bin", os.environ.get("DTKC_BIN")):
        if folder and (path := Path(folder) / (name + ending)).is_file():
            return str(path)
    # Beside the interpreter lies a script of this very name that would come back here.
    own = {Path(sys.executable).parent, Path(sys.argv[0]).resolve().parent}
    folders = [folder for folder in os.environ.get("PATH", "").split(os.pathsep) if folder and Path(folder) not in own]
    path = shutil.which(name, path=os.pathsep.join(folders))
    if path is None:
        raise Error(f"the program {name} is not in this package; install a wheel of dtkc, or set DTKC_BIN to the folder that holds it")
    return path


def run(name, arguments):
    """Runs a program to its end and gives what it printed; its own sentence is the error."""
    done = subprocess.run(
        [find(name), *map(str, arguments)], env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise Error(last_sentence(done.stderr) or f"{name} ended with {done.returncode}")
    return done.stdout


def last_sentence(text):
    """The error of a program: its last `error:` line, and what follows it."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    starts = [place for place, line in enumerate(lines) if line.startswith("error:")]
    if not starts:
        return lines[-1] if lines else ""
    return " ".join(lines[starts[-1] :]).removeprefix("error:").strip()


def _become(name):
    try:
        program = find(name)
    except Error as error:
        sys.exit(f"error: {error}")
    arguments = [program, *sys.argv[1:]]
    if os.name == "nt":
        sys.exit(subprocess.call(arguments, env=environment()))
    os.execve(program, arguments, environment())


def data():
    _become("dtkc-data")


def train():
    _become("dtkc-train")


def label():
    _become("dtkc-label")


def serve():
    _become("dtkc-serve")
