#!/bin/sh
# What the kiosk owes whoever passes by: its page.
set -eu
exec curl --fail --silent --show-error --max-time 30 --noproxy '*' "$LDFI_TARGET/" >/dev/null
