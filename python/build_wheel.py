"""A wheel of this package: a zip of its files and three that describe it (peps.python.org/pep-0427 and pep-0517)."""
import base64
import hashlib
import pathlib
import tomllib
import zipfile

here = pathlib.Path(__file__).parent
project = tomllib.loads((here / "pyproject.toml").read_text())["project"]
stem = f"{project['name']}-{project['version']}"
metadata = (
    f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    f"Summary: {project['description']}\nRequires-Python: {project['requires-python']}\n"
)


def record_of(name, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    files = {f"stepsim/{path.name}": path.read_bytes() for path in sorted((here / "stepsim").iterdir()) if path.is_file()}
    files[f"{stem}.dist-info/METADATA"] = metadata.encode()
    files[f"{stem}.dist-info/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: stepsim\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = f"{stem}.dist-info/RECORD"
    files[record] = ("".join(record_of(*each) for each in files.items()) + f"{record},,\n").encode()
    name = f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in files.items():
            wheel.writestr(zipfile.ZipInfo(path), data)
    return name
