"""python_package.py STEPSIM ROOT FOLDER: the Python package is installed without a network, and its example prints what it says."""
import os
import re
import subprocess
import sys
import venv

stepsim, root, folder = (os.path.abspath(word) for word in sys.argv[1:])
example = os.path.join(root, "python/example.py")
environment = {**os.environ, "STEPSIM": stepsim, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def printed(*words, **more):
    done = subprocess.run(words, capture_output=True, text=True, env={**environment, **more})
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


printed(sys.executable, "-B", os.path.join(root, "python/make_records.py"), stepsim)
version = re.search(r'^version = "(.*)"$', open(os.path.join(root, "python/pyproject.toml")).read(), re.MULTILINE)[1]
if printed(stepsim, "--version") != f"stepsim {version}\n":
    sys.exit(f"python/pyproject.toml says version {version}, the program another one")
said = re.findall(r"^#: (.*)$", open(example).read(), re.MULTILINE)
try:
    import ensurepip  # noqa: F401

    venv.create(folder, clear=True, with_pip=True)
    # Built out of a copy: the checkout stays as it is.
    copy = os.path.join(folder, "source")
    printed("cp", "-r", os.path.join(root, "python"), copy)
    python = os.path.join(folder, "bin/python3")
    printed(python, "-m", "pip", "install", "--quiet", "--no-index", "--no-build-isolation", copy)
    found = printed(python, example)
except ImportError:  # Debian: apt-get install python3-venv
    found = printed(sys.executable, "-B", example, PYTHONPATH=os.path.join(root, "python"))
if found.splitlines() != said:
    sys.exit(f"the example says\n{said}\nand prints\n{found.splitlines()}")
print("the example prints what it says")
