"""Published models by name: the program does it."""

import json
import os
import shutil
import subprocess
from typing import List, Optional

from ._calls import PathLike
from ._errors import ArgumentError, FileError, UnsupportedError

USAGE = 2


def pull(name: str, *, to: Optional[PathLike] = None, sha256: Optional[str] = None) -> str:
    """Downloads a model with `oriel pull` and returns its path: a name of `oriel models`, ORG/REPO of huggingface.co, or an
    address. A file that is there already is not downloaded again. `to`: a folder, or the file to make.

    Needs the program `oriel` on the PATH, or its path in the environment variable ORIEL_PROGRAM.
    """
    program = os.environ.get("ORIEL_PROGRAM") or shutil.which("oriel")
    if program is None:
        raise UnsupportedError("the program oriel is not on the PATH: install it, or set ORIEL_PROGRAM")
    command: List[str] = [program, "pull", "--json"]
    command += [] if to is None else ["--to", os.fspath(to)]
    command += [] if sha256 is None else ["--sha256", sha256]
    done = subprocess.run([*command, "--", name], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode == 0:
        file: str = json.loads(done.stdout)["path"]
        return file
    line = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
    line = line[len("oriel: "):] if line.startswith("oriel: ") else line
    raise ArgumentError(line) if done.returncode == USAGE else FileError(line)
