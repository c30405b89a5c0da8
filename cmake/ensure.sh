# Shared by ./stepsim, ./check and .ci/run, which source it with `root` set to the checkout.
# Everything it says goes to stderr. Exit codes: 2 packages are missing, 3 the build failed.

build_packages=(g++ cmake ninja-build pkg-config libsimgrid-dev libboost-graph-dev
  libboost-program-options-dev libhdf5-dev libfmt-dev libyaml-dev libtomlplusplus-dev
  node-d3)
test_packages=(catch2 python3-h5py valgrind)  # without valgrind no instructions are counted
slurm_packages=(slurm-wlm munge)  # without them one test is skipped
stamp=$root/build/.stamp
log=$root/build/launch.log

say() { printf 'stepsim: %s\n' "$*" >&2; }

# quietly CODE COMMAND...: only a failure is worth reading.
quietly() {
  local code=$1
  shift
  "$@" </dev/null >>"$log" 2>&1 && return
  tail -n 100 "$log" >&2
  say "failed: $* (whole log: $log)"
  exit "$code"
}

# ensure_packages NAME...: installs the Debian packages among them that are missing, or says how to.
ensure_packages() {
  local installed package missing=()
  installed=$(dpkg-query -W -f '${db:Status-Status}:${Package}\n' "$@" 2>/dev/null || true)
  for package; do
    [[ $'\n'$installed$'\n' == *$'\n'"installed:$package"$'\n'* ]] || missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  if ((EUID != 0)) || ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    say "missing packages: ${missing[*]}"
    say "as root on Debian 12 or 13: apt-get install ${missing[*]}"
    say "elsewhere, install their equivalents and build with: cmake --workflow --preset release"
    exit 2
  fi
  say "installing ${missing[*]}"
  mkdir -p "$root/build"
  quietly 2 apt-get update
  DEBIAN_FRONTEND=noninteractive quietly 2 apt-get install -y --no-install-recommends "${missing[@]}"
}

# Must be cheap: every ./stepsim asks. -cnewer also sees files that were moved or unpacked with an old date;
# the stamp holds the path it was built at, because a moved or copied build would read the old place's files.
stale() {
  [[ -x $root/build/stepsim && -f $stamp && $(<"$stamp") == "$root" ]] || return 0
  [[ $(find "$root"/{CMakeLists.txt,CMakePresets.json,sim,topology,workloads,scenarios,analysis,cli} \
    \( -name '*.[ch]pp' -o -name 'CMake*' -o -path '*/report/page/*' -o -path '*/cli/commands/*' \
    -o -name key_texts.yaml -o -name source_kinds.yaml -o -name architectures.yaml \) -cnewer "$stamp" -print -quit 2>/dev/null) ]]
}

# build OFF|ON TARGET: brings build/ up to date, with or without the tests; one caller at a time.
build() {
  mkdir -p "$root/build"
  (
    flock 9
    if [[ $1 == OFF ]] && ! stale; then exit 0; fi  # somebody else built it while we waited
    cd "$root" || exit 3
    : >"$log"
    tests=()
    if [[ $1 == ON ]]; then
      ensure_packages "${build_packages[@]}" "${test_packages[@]}"
      tests=(-D BUILD_TESTING=ON)
    else
      ensure_packages "${build_packages[@]}"
    fi
    echo "$root" >"$stamp.new"  # dated before the build: an edit during it counts as newer
    say "building ${2/all/everything} (log: $log)"
    if grep -qsxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" build/CMakeCache.txt; then
      quietly 3 cmake "${tests[@]}" build  # keeps whatever else was configured by hand
    else
      rm -rf build/CMakeCache.txt build/CMakeFiles
      quietly 3 cmake --preset release "${tests[@]:--DBUILD_TESTING=OFF}"
    fi
    quietly 3 cmake --build build -j "$(nproc)" --target "$2"
    mv "$stamp.new" "$stamp"
  ) 9>"$root/build/.lock" || exit
}
