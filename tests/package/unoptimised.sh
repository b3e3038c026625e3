#!/bin/sh
# Starts a compiler with a build's own options, without optimisation: a library takes half the time. Uses ccache if
# installed.
if command -v ccache >/dev/null; then
  exec ccache "$@" -O0
fi
exec "$@" -O0
