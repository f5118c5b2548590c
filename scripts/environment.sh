# shellcheck shell=sh
# What scripts/run, scripts/test and scripts/lock share: finding Python and keeping virtual environments. Sourced, never run.
# Nothing here prints on standard output.

: "${root:?the caller sets it to the checkout}"

say() {
    printf 'muniment: %s\n' "$*" >&2
}

give_up() {
    say "$1"
    exit 2
}

# Whether apt may be used without asking: as root, on a system that has it.
may_use_apt() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1
}

apt_install() {
    say "installing $* with apt-get"
    apt_log=$(mktemp)
    # The lists of a fresh machine are empty or old, so a first failure is followed by an update and one more try.
    if env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" </dev/null >"$apt_log" 2>&1 9>&- ||
        { apt-get update </dev/null >"$apt_log" 2>&1 9>&- &&
            env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" </dev/null >"$apt_log" 2>&1 9>&-; }; then
        rm -f "$apt_log"
        return 0
    fi
    cat "$apt_log" >&2
    rm -f "$apt_log"
    give_up "apt-get install $* failed, see above"
}

is_new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

# Sets `python` to the first interpreter that is 3.11 or newer. $PYTHON goes before all others, then the system's own: a
# distribution builds its interpreter with profiles, those that pyenv builds take 1.6 times the CPU time.
find_python() {
    for python in ${PYTHON:+"$PYTHON"} /usr/bin/python3 python3.14 python3.13 python3.12 python3.11 python3; do
        if is_new_enough "$python"; then
            return 0
        fi
    done
    say 'Python 3.11 or newer is needed and none was found (python3.14 to python3.11, python3). Install it with'
    say '  Debian 12 and later, Ubuntu 24.04 and later:  apt-get install python3 python3-venv'
    give_up '  Ubuntu 22.04:                                 apt-get install python3.11 python3.11-venv'
}

# Debian ships venv without ensurepip; the package that brings it is named after the interpreter's version.
need_venv_module() {
    if "$python" -c 'import ensurepip, venv' >/dev/null 2>&1; then
        return 0
    fi
    package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    if may_use_apt; then
        apt_install "$package"
    fi
    "$python" -c 'import ensurepip, venv' >/dev/null 2>&1 ||
        give_up "$python cannot make virtual environments. Install what it lacks with: apt-get install $package"
}

# Prints a checksum of the given files, of where the checkout lies, and of the interpreter that the environment uses.
fingerprint() {
    venv=$1
    shift
    {
        printf '%s\n' "$root"
        readlink -f "$venv/bin/python"
        cat "$@"
    } 2>/dev/null | cksum
}

# is_ready VENV STAMP FILE...: whether the environment was completely installed from just these files.
is_ready() {
    ready_venv=$1
    ready_stamp=$1/$2
    shift 2
    # Killed in the middle, an installation leaves `installing` behind, and its packages cannot be trusted.
    [ -x "$ready_venv/bin/python" ] && [ ! -e "$ready_venv/installing" ] && [ -r "$ready_stamp" ] &&
        read -r ready_seen <"$ready_stamp" && [ "$ready_seen" = "$(fingerprint "$ready_venv" "$@")" ]
}

# take_lock VENV: the lock of an environment, for as long as this shell (or a child that has file descriptor 9) lives.
take_lock() {
    exec 9>>"$1.lock"
    # The lock belongs to the open file, so that it outlives the Python that takes it.
    "$python" -c 'import fcntl; fcntl.flock(9, fcntl.LOCK_EX)'
}

drop_lock() {
    exec 9<&-
}

# Runs a step of the installation; its output is shown only when it fails.
step() {
    step_log=$(mktemp)
    if ! "$@" </dev/null >"$step_log" 2>&1; then
        cat "$step_log" >&2
        rm -f "$step_log"
        say "could not install, see above; the command was: $*"
        exit 1
    fi
    rm -f "$step_log"
}

# make_venv DIR: an empty environment, unless DIR holds a sound one.
make_venv() {
    if [ ! -e "$1/installing" ] && is_new_enough "$1/bin/python" && "$1/bin/python" -c 'import pip' 2>/dev/null; then
        return 0
    fi
    need_venv_module
    rm -rf "$1"
    step "$python" -m venv "$1"
}

# pip_install VENV ARGUMENT...: packages with hashes only, and builds with the locked build tools only. The caller may
# set `pip_flags` to one more option.
pip_install() {
    pip_venv=$1
    shift
    step env PIP_USER=0 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 \
        "$pip_venv/bin/python" -m pip install --quiet --no-build-isolation ${pip_flags:+"$pip_flags"} "$@"
}

# install_wabac: the wheel that holds wabac.js, alone, in an environment of its own.
install_wabac() {
    wabac=$root/.venv-pywb
    wabac_lock=$root/requirements-pywb.lock
    if is_ready "$wabac" stamp-wabac "$wabac_lock"; then
        return 0
    fi
    find_python
    take_lock "$wabac"
    if ! is_ready "$wabac" stamp-wabac "$wabac_lock"; then
        say "installing wabac.js into ${wabac##*/} (first run, or requirements have changed)"
        # what was there may be another version of Python, or pywb with all that it needs
        rm -rf "$wabac"
        make_venv "$wabac"
        : >"$wabac/installing"
        pip_install "$wabac" --no-compile --no-deps --only-binary :all: --require-hashes -r "$wabac_lock"
        rm -f "$wabac/installing"
        fingerprint "$wabac" "$wabac_lock" >"$wabac/stamp-wabac"
    fi
    drop_lock
}

# install_locked VENV STAMP LOCK [PROJECT]: everything of LOCK, and the project itself as an editable package.
install_locked() {
    build_lock=$root/requirements-build.lock
    if is_ready "$1" "$2" "$build_lock" "$3" "$root/pyproject.toml"; then
        return 0
    fi
    find_python
    take_lock "$1"
    # Another script may have installed everything while this one waited for the lock.
    if ! is_ready "$1" "$2" "$build_lock" "$3" "$root/pyproject.toml"; then
        say "installing into ${1##*/} (first run, or requirements have changed)"
        make_venv "$1"
        : >"$1/installing"
        pip_install "$1" --require-hashes -r "$build_lock"
        pip_install "$1" --require-hashes -r "$3"
        if [ -n "${4-}" ]; then
            pip_install "$1" --no-deps --editable "$4"
        fi
        rm -f "$1/installing"
        fingerprint "$1" "$build_lock" "$3" "$root/pyproject.toml" >"$1/$2"
    fi
    drop_lock
}
