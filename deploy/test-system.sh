#!/bin/sh
# What the tests use from the system, for Debian: installed when we are root, else named with what is skipped.
set -u
missing=""
command -v chromium >/dev/null 2>&1 || missing="$missing chromium"
command -v cc >/dev/null 2>&1 || missing="$missing gcc libc6-dev"
[ -z "$missing" ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing$missing"
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing fonts-dejavu-core >/dev/null && exit 0
fi
echo "not installed:$missing. The tests that need it are skipped: the console in a real browser (chromium), GPUs by a library that answers as"
echo "NVIDIA's (gcc). Install it, or run as root on Debian."
exit 0
