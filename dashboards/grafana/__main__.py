"""Write the JSON of all dashboards (``make grafana``)."""

from __future__ import annotations

import sys
from pathlib import Path

from ldfi.dashboards.grafana import experiments, service
from ldfi.dashboards.grafana.board import as_json

FILES = {"experiments.json": experiments.DASHBOARD, "service.json": service.DASHBOARD}


def main() -> None:
    """Write them."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m ldfi.dashboards.grafana FOLDER")
    for name, dashboard in FILES.items():
        (Path(sys.argv[1]) / name).write_text(as_json(dashboard))


if __name__ == "__main__":
    main()
