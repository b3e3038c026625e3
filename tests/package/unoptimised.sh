#!/bin/sh
# Starts a compiler with a build's own options, but for optimisation: a library takes half the time. What was compiled is
# kept where that is possible.
if command -v ccache >/dev/null; then
  exec ccache "$@" -O0
fi
exec "$@" -O0
