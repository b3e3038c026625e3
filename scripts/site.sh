#!/usr/bin/env bash
# The pages of docs/ as a site in build/site: scripts/site.sh
#
# Debian's python3-markdown-it renders them and is installed if missing. No page loads anything from another host;
# build/site/index.html may be opened as a file.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck disable=SC1091
. scripts/lib/install.sh

oriel_install_packages site || exit 1
# A second Python would not have the modules of the distribution's.
/usr/bin/python3 site/build.py build/site
