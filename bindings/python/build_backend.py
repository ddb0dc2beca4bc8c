"""Builds what pip installs: the extension by maturin, and beside it the command `pto` with the libraries of the CANN interface.

The variable PTO_WHEEL_PROFILE names the profile of cargo; it is `release` unless it is set. PTO_WHEEL_BUILT names a folder of cargo in which command and
libraries are built already. The source package is the folder of the workspace.
"""

import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import maturin

ROOT = Path(__file__).resolve().parents[2]
# Packages of the workspace, and what each of them builds.
BUILT = {
    "pto-cli": ["pto"],
    "pto-acl": ["libpto_acl.so"],
    "pto-acl-entry": ["libascendcl.so"],
    "pto-acl-graph": ["libacl_op_compiler.so"],
    "pto-acl-nn": ["libopapi.so"],
    "pto-acl-hccl": ["libhccl.so"],
}
# Where maturin looks for them.
_DATA = ROOT / "target/wheel-data"
# Folders that are no sources, whether git knows the workspace or not.
_NO_SOURCES = {"target", "__pycache__", ".git"}

get_requires_for_build_wheel = maturin.get_requires_for_build_wheel


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """Writes the metadata; the name of its folder. Nothing is built for it."""
    _DATA.mkdir(parents=True, exist_ok=True)
    return maturin.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


def get_requires_for_build_sdist(config_settings=None):
    """The source package is written here, with what Python has."""
    return []


def _profile():
    return os.environ.get("PTO_WHEEL_PROFILE", "release")


def _target():
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()


def put_command(built, data):
    """Copies the command and its libraries from the folder `built` of cargo to the folder `data`, from which maturin takes them."""
    shutil.rmtree(data, ignore_errors=True)
    for names in BUILT.values():
        for name in names:
            folder = data / ("data/lib" if name.endswith(".so") else "scripts")
            folder.mkdir(parents=True, exist_ok=True)
            # A library that cargo has built for another crate is one folder below.
            made = next((made for made in (built / name, built / "deps" / name) if made.exists()), built / name)
            shutil.copy2(made, folder / name)
            subprocess.run(["strip", folder / name], check=True)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Builds command, libraries and extension; the name of the wheel."""
    built = os.environ.get("PTO_WHEEL_BUILT")
    if built is None:
        packages = [word for name in BUILT for word in ("-p", name)]
        subprocess.run(["cargo", "build", "--profile", _profile(), *packages], cwd=ROOT, check=True)
        built = _target() / ("debug" if _profile() == "dev" else _profile())
    put_command(Path(built), _DATA)
    os.environ["MATURIN_PEP517_ARGS"] = f"--profile {_profile()}"
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def _sources():
    """The files of the workspace: those that git knows, or all, where this is a source package already."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True)
    if listed.returncode == 0:
        return [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    files = (path for path in ROOT.rglob("*") if path.is_file())
    return [path for path in files if not _NO_SOURCES & set(path.relative_to(ROOT).parts)]


def build_sdist(sdist_directory, config_settings=None):
    """Writes the source package; its name."""
    metadata = Path(sdist_directory) / "metadata"
    made = metadata / prepare_metadata_for_build_wheel(str(metadata))
    text = (made / "METADATA").read_bytes()
    shutil.rmtree(metadata)
    version = next(line for line in text.decode().splitlines() if line.startswith("Version: ")).split(" ")[1]
    name = f"pto_runtime-{version}"
    information = ROOT / "target/PKG-INFO"
    information.parent.mkdir(exist_ok=True)
    information.write_bytes(text)
    with tarfile.open(Path(sdist_directory) / f"{name}.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as archive:
        archive.add(information, f"{name}/PKG-INFO")
        for path in _sources():
            # Skips files that were deleted and not committed.
            if path.is_file():
                archive.add(path, f"{name}/{path.relative_to(ROOT)}")
    return f"{name}.tar.gz"
