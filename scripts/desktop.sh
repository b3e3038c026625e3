#!/usr/bin/env bash
# Builds the desktop app and drives it with keys and mouse on an invisible screen:
#
#   scripts/desktop.sh [FOLDER]   screenshots go to FOLDER (build/desktop); ends with "N passed, N failed"
#
# docs/desktop.png and docs/desktop-light.png are window.png and window-light.png. Missing packages are installed: SDL2,
# Dear ImGui, ICU, Xvfb, xdotool, ImageMagick.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/lib/install.sh
. scripts/lib/install.sh

oriel_packages+='
desktop libsdl2-dev      must inc:SDL2/SDL.h
desktop libimgui-dev     must inc:imgui/imgui.h
desktop libicu-dev       may inc:unicode/ubidi.h
desktop fonts-dejavu-core may file:/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf
desktop xvfb             must cmd:Xvfb
desktop xauth            must cmd:xauth
desktop xdotool          must cmd:xdotool
desktop imagemagick      must cmd:import
'
oriel_install_packages build desktop
oriel_configure -DORIEL_DESKTOP=ON
cmake --build build/release --target oriel_desktop >&2

folder=${1:-build/desktop}
mkdir -p "$folder"
program=build/release/apps/oriel-desktop
model=models/oriel-tiny/oriel-tiny-q8_0.gguf
exec xvfb-run -a -s "-screen 0 1500x1000x24" python3 contrib/desktop/tests/drive.py "$program" "$model" "$(realpath "$folder")"
