#!/bin/sh
# The page of a book is there. LDFI_TARGET says where; nothing here knows of fault injection.
curl --silent --show-error --fail --max-time 20 "$LDFI_TARGET/books/17" >/dev/null
