"""Exit codes: 0 fine, 1 a failure was found, 2 usage, 3 inconclusive, 4 service unreachable.

130 where a command was interrupted, as shells have it.
"""

from __future__ import annotations

from typing import Final

FINE: Final = 0
FOUND: Final = 1
USAGE: Final = 2
INCONCLUSIVE: Final = 3
UNREACHABLE: Final = 4
INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141
"""Nobody read on (`| head`) before there was a verdict: 128 and the number of SIGPIPE."""
