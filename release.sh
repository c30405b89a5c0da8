#!/usr/bin/env bash
# Makes what a release consists of, in build/release: the Debian package, the source as it was committed, and a wheel that carries the
# program. The wheel is installed in an environment of its own and asked, and the source's top folder is checked against the version.
set -euo pipefail
root=$(readlink -f "${BASH_SOURCE[0]%/*}")
source "$root/cmake/ensure.sh"
cd "$root"
ensure_packages "${build_packages[@]}" dpkg-dev git python3-venv
build OFF all
out=$root/build/release
rm -rf "$out"
mkdir -p "$out"
version=$(build/stepsim --version | cut -d ' ' -f 2)

cpack --config build/CPackConfig.cmake -B "$out" >>"$log" 2>&1
rm -rf "$out/_CPack_Packages"
git archive --prefix "stepsim-$version/" -o "$out/stepsim-$version.tar.gz" HEAD

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cmake --install build --prefix "$scratch/prefix" >>"$log"
(cd "$out" && STEPSIM_PREFIX=$scratch/prefix /usr/bin/python3 -B "$root/python/build_wheel.py" >>"$log")
/usr/bin/python3 -m venv "$scratch/venv"
"$scratch/venv/bin/pip" install --quiet --no-index "$out"/stepsim-*.whl
# Nothing of this checkout, nor any variable of this shell, is within its reach.
asked=$(cd / && env -i HOME="$scratch" "$scratch/venv/bin/python" -m stepsim --version)
[[ $asked == "stepsim $version" ]] || { say "the wheel answers: $asked"; exit 3; }
(cd / && env -i HOME="$scratch" "$scratch/venv/bin/stepsim" run qwen3-30b-sft-zero3 --samples 0 --faster 0 | tail -n 1 >&2)
ls -l "$out"
