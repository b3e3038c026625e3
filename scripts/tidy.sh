#!/usr/bin/env bash
# clang-tidy over the library and the program, with every check of .clang-tidy: what the test style.tidy leaves out for
# time, too. Some eight minutes on two cores the first time; what passed is not looked at again until it changes.
set -uo pipefail
exec </dev/null

# shellcheck source=scripts/lib/install.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/install.sh"

oriel_install_packages build runtime test || exit 1
oriel_configure -DORIEL_BUILD_TESTS=ON -DORIEL_WARNINGS_AS_ERRORS=ON -DORIEL_UNITY=OFF || exit 1
# clang-tidy needs the generated files.
cmake --build "$oriel_root/build/release" --target oriel >&2 || exit 1
exec python3 "$oriel_root/tests/style/tidy.py" "$oriel_root/build/release" --all
