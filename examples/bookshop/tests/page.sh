#!/bin/sh
# What the bookshop owes its readers, as a shell script.
set -eu
exec curl --fail --silent --show-error --max-time 30 --noproxy '*' "$LDFI_TARGET/books/17" >/dev/null
