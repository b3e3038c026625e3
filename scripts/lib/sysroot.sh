# shellcheck shell=bash
# Files of other architectures from Debian packages, without changes to the installed packages. To be sourced after
# install.sh.
#
#   oriel_unpack FOLDER PACKAGE...              packages of this system, unpacked below FOLDER
#   oriel_sysroot FOLDER ARCH SUITE PACKAGE...  packages of ARCH with all dependencies
#   oriel_gpu_drivers FOLDER                    Mesa's GPU drivers, and imitations of their kernel drivers
#   oriel_sysroot_programs BIN FOLDER LOADER PROGRAM...  starts programs of FOLDER with its libraries: BIN/PROGRAM,
#                                               and BIN/with FILE for any other
#
# SUITE is a release's name, or "" for this system's. Complete folders are not changed.

# Unpacks the packages in folder $1 below $2.
oriel_unpack_files() {
  local file
  for file in "$1"/*.deb; do
    oriel_logged dpkg-deb -x "$file" "$2" || return 1
  done
}

# True if the stamp in folder $1 says that the folder holds all of $2.
oriel_is_complete() {
  [[ -f $1/.complete && $(<"$1/.complete") == "$2" ]]
}

# Starts folder $1 afresh.
oriel_begin_folder() {
  rm -rf "$1" && mkdir -p "$1/packages" && return 0
  oriel_say "cannot write to $1"
  return 1
}

oriel_unpack() {
  local folder=$1
  shift
  oriel_is_complete "$folder" "$*" && return 0
  oriel_begin_folder "$folder" || return 1
  # Fails if the local lists are older than the mirror's.
  (cd "$folder/packages" && oriel_retry 5 oriel_logged apt-get -q download "$@") || {
    oriel_say "could not download $*: run apt-get update, check the network"
    return 1
  }
  oriel_unpack_files "$folder/packages" "$folder" || return 1
  rm -rf "$folder/packages"
  echo "$*" >"$folder/.complete"
}

# One `deb` line for each of this system's Debian sources, or for suite $1 from the same mirror.
oriel_sources() {
  # shellcheck disable=SC2016
  apt-get indextargets --format '$(ORIGIN) $(REPO_URI) $(RELEASE)' 'Created-By: Packages' |
    awk -v suite="$1" '$1 == "Debian" && (suite == "" || $3 !~ /-/) {
      print "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] " $2 " " \
            (suite == "" ? $3 : suite) " main"
    }' | sort -u
}

oriel_sysroot() {
  local folder=$1 arch=$2 suite=$3
  shift 3
  oriel_is_complete "$folder" "$suite $*" && return 0
  oriel_begin_folder "$folder" || return 1
  # A private apt: its own sources, lists and an empty list of installed packages.
  local root=$folder/apt
  mkdir -p "$root"/{etc/preferences.d,lists/partial,cache} "$folder/packages/partial"
  : >"$root/status"
  oriel_sources "$suite" >"$root/etc/sources.list"
  if [[ ! -s $root/etc/sources.list ]]; then
    oriel_say "no Debian source is set up here: $arch libraries cannot be had"
    return 1
  fi
  local apt=(apt-get -q -y -o "APT::Architecture=$arch" -o "APT::Architectures=$arch"
    -o "Dir::Etc::sourcelist=$root/etc/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o "Dir::Etc::preferencesparts=$root/etc/preferences.d" -o Dir::Etc::preferences=/dev/null
    -o "Dir::State=$root" -o "Dir::State::lists=$root/lists" -o "Dir::State::status=$root/status"
    -o "Dir::Cache=$root/cache" -o "Dir::Cache::archives=$folder/packages"
    -o APT::Sandbox::User=root -o Acquire::Languages=none -o Debug::NoLocking=1)
  # One source of several may be out of step for hours; the install decides.
  oriel_retry 3 oriel_logged "${apt[@]}" update || true
  oriel_retry 5 oriel_logged "${apt[@]}" install --no-install-recommends --download-only "$@" || {
    oriel_say "could not download $* for $arch"
    return 1
  }
  oriel_unpack_files "$folder/packages" "$folder" || return 1
  # Newer releases keep everything below /usr and have an old system's folders linked there.
  [[ -e $folder/lib ]] || ln -s usr/lib "$folder/lib"
  oriel_relative_links "$folder"
  rm -rf "$folder/packages" "$root"
  echo "$suite $*" >"$folder/.complete"
}

# Absolute links would point at this system's files.
oriel_relative_links() {
  local link to
  while read -r link; do
    to=$(readlink "$link")
    [[ $to == /* ]] && ln -sfnr "$1$to" "$link"
  done < <(find "$1" -type l)
  return 0
}

oriel_gpu_drivers() {
  oriel_sysroot "$1" amd64 "${ORIEL_NEWER_SUITE:-testing}" libstdc++6 libvulkan1 mesa-vulkan-drivers mesa-drm-shim
}

oriel_sysroot_programs() {
  local bin=$1 folder=$2 loader=$3 lib program
  shift 3
  lib=$(compgen -G "$folder/usr/lib/*/$loader" | head -n 1)
  [[ -n $lib ]] || { oriel_say "no $loader in $folder" && return 1; }
  printf '#!/bin/sh\nexec "%s" --library-path "%s" "$@"\n' "$lib" "${lib%/*}" >"$bin/with"
  for program in "$@"; do
    printf '#!/bin/sh\nexec "%s" "%s" "$@"\n' "$bin/with" "$folder/usr/bin/$program" >"$bin/$program"
  done
  (cd "$bin" && chmod +x with "$@")
}
