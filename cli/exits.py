"""Exit codes: 0 fine, 1 a failure was found, 2 usage, 3 inconclusive, 4 service unreachable.

70 a defect of ldfi, 130 where a command was interrupted, as shells have it.
"""

from __future__ import annotations

from typing import Final

FINE: Final = 0
FOUND: Final = 1
USAGE: Final = 2
INCONCLUSIVE: Final = 3
UNREACHABLE: Final = 4
DEFECT: Final = 70
"""An error of ldfi's own (EX_SOFTWARE): Python would say 1, which is a failure that was found."""
INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141
"""Nobody read on (`| head`) before there was a verdict: 128 and the number of SIGPIPE."""
