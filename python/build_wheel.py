"""A wheel of this package: a zip of its files and three that describe it (peps.python.org/pep-0427 and pep-0517).

$STEPSIM_PREFIX names where `cmake --install` put the program: then the wheel carries it, with the libraries that it loads and their
copyrights, for machines of this kind whose C library is no older than this one's.
"""
import base64
import hashlib
import os
import pathlib
import platform
import re
import shutil
import subprocess
import tomllib
import zipfile

here = pathlib.Path(__file__).parent
project = tomllib.loads((here / "pyproject.toml").read_text())["project"]
stem = f"{project['name']}-{project['version']}"
metadata = (
    f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    f"Summary: {project['description']}\nRequires-Python: {project['requires-python']}\n"
)
scripts = "".join(f"{name} = {place}\n" for name, place in project["scripts"].items())
# The C library is the machine's: a program has to run with the one whose loader starts it.
OF_THE_MACHINE = re.compile(r"(ld-linux.*|lib(c|m|dl|rt|pthread|resolv))\.so")
LAUNCHER = """#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} exec "$here/bin/stepsim" "$@"
"""


def record_of(name, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


def said(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def libraries_of(*programs):
    """The files of all libraries that these load, by the names under which they are loaded."""
    found = {}
    for program in programs:
        for name, path in re.findall(r"^\s*(\S+) => (/\S+)", said("ldd", program), re.MULTILINE):
            if not OF_THE_MACHINE.match(name):
                found[name] = pathlib.Path(path).resolve()
    return found


def copyrights_of(paths):
    """The copyright files of the Debian packages that these files belong to."""
    for path in paths:
        places = [path, pathlib.Path("/", *path.parts[2:])]  # a package may say /lib of what is in /usr/lib
        owners = subprocess.run(["dpkg", "-S", *places], capture_output=True, text=True, check=False).stdout
        package = owners.split(":")[0]
        notice = pathlib.Path("/usr/share/doc") / package / "copyright"
        if package and notice.exists():
            yield f"copyrights/{package}", notice


def stripped(path, scratch):
    copy = scratch / "stripped"
    if subprocess.run(["strip", "--strip-unneeded", "-o", copy, path], capture_output=True, check=False).returncode != 0:
        return path.read_bytes()
    return copy.read_bytes()


def program_files(prefix, scratch):
    """What `stepsim/program` holds: the launcher, the program, its engine, its data, and the libraries of both."""
    module = prefix / "lib/stepsim/stepsim_simgrid.so"
    files = {"stepsim": LAUNCHER.encode()}
    for path in (prefix / "bin/stepsim", module):
        files[str(path.relative_to(prefix))] = stripped(path, scratch)
    share = prefix / "share/stepsim"
    files |= {f"share/stepsim/{path.relative_to(share)}": path.read_bytes() for path in sorted(share.rglob("*")) if path.is_file()}
    libraries = libraries_of(prefix / "bin/stepsim", module)
    files |= {f"lib/{name}": stripped(path, scratch) for name, path in sorted(libraries.items())}
    files |= {name: notice.read_bytes() for name, notice in copyrights_of(sorted(libraries.values()))}
    return {f"stepsim/program/{name}": data for name, data in files.items()}


def machine_tag():
    major, minor = re.match(r"(\d+)\.(\d+)", platform.libc_ver()[1]).groups()
    return f"py3-none-manylinux_{major}_{minor}_{platform.machine()}"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    files = {f"stepsim/{path.name}": path.read_bytes() for path in sorted((here / "stepsim").iterdir()) if path.is_file()}
    prefix, tag = os.environ.get("STEPSIM_PREFIX"), "py3-none-any"
    if prefix:
        scratch = pathlib.Path(wheel_directory) / "scratch"
        scratch.mkdir()
        files |= program_files(pathlib.Path(prefix), scratch)
        shutil.rmtree(scratch)
        tag = machine_tag()
        files[f"{stem}.dist-info/entry_points.txt"] = f"[console_scripts]\n{scripts}".encode()
    files[f"{stem}.dist-info/METADATA"] = metadata.encode()
    pure = str(not prefix).lower()
    files[f"{stem}.dist-info/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: stepsim\nRoot-Is-Purelib: {pure}\nTag: {tag}\n".encode()
    record = f"{stem}.dist-info/RECORD"
    files[record] = ("".join(record_of(*each) for each in files.items()) + f"{record},,\n").encode()
    name = f"{stem}-{tag}.whl"
    runs = {"stepsim/program/stepsim", "stepsim/program/bin/stepsim"}
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path)
            entry.external_attr = (0o100755 if path in runs else 0o100644) << 16
            wheel.writestr(entry, data, zipfile.ZIP_DEFLATED)
    return name


if __name__ == "__main__":
    print(build_wheel("."))
