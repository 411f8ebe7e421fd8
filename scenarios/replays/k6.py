"""A recording as a script for k6: for rates that one process in Python does not reach.

The script is an open loop as well (k6's arrival-rate executors) and tells latencies by request
class (tag ``name``). It counts from when a request was *sent*: what had to wait for a virtual user
shows as ``dropped_iterations`` instead, and a threshold makes the run fail then.

https://grafana.com/docs/k6/latest/using-k6/scenarios/executors/
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, Final

from ldfi.scenarios.replays.arrivals import Stretch
from ldfi.scenarios.replays.prepared import Prepared

_SCRIPT: Final = """\
// Made by `ldfi replay export --k6`: recorded requests, without secrets.
// k6 run -e TARGET=https://staging.example this-file.js
import http from 'k6/http';
import {{ check }} from 'k6';

export const options = {options};

const requests = {requests};
const total = requests.reduce((sum, each) => sum + each.weight, 0);

function drawn() {{
  let left = Math.random() * total;
  for (const each of requests) {{
    left -= each.weight;
    if (left < 0) return each;
  }}
  return requests[requests.length - 1];
}}

export default function () {{
  const each = drawn();
  const headers = Object.assign({{ 'x-ldfi-replay': '1', 'x-device-id': 'replay' }}, each.headers);
  if (__ENV.AUTHORIZATION) headers.authorization = __ENV.AUTHORIZATION;
  const answer = http.request(each.method, __ENV.TARGET + each.target, each.body, {{
    headers: headers,
    redirects: 0,
    tags: {{ name: each.name }},
  }});
  const good = (a) => each.statuses.includes(a.status);
  check(answer, {{ 'status is good': good }}, {{ name: each.name }});
}}
"""


def script(requests: Sequence[Prepared], stretches: Sequence[Stretch], connections: int) -> str:
    """Write the script."""
    listed = [_request(each) for each in requests]
    return _SCRIPT.format(
        options=json.dumps(options(stretches, connections), indent=2),
        requests=json.dumps(listed, indent=2),
    )


def options(stretches: Sequence[Stretch], connections: int) -> dict[str, Any]:
    """Write the profile as k6's ``ramping-arrival-rate``: rates are whole, per minute."""
    stages: list[dict[str, Any]] = []
    at = stretches[0].begin
    for each in stretches:
        if not math.isclose(each.begin, at):
            stages.append({"target": _minutely(each.begin), "duration": "0s"})
        stages.append(
            {"target": _minutely(each.end), "duration": f"{round(each.seconds * 1000)}ms"}
        )
        at = each.end
    return {
        "discardResponseBodies": True,
        "summaryTrendStats": ["p(50)", "p(95)", "p(99)", "p(99.9)", "count"],
        "scenarios": {
            "replay": {
                "executor": "ramping-arrival-rate",
                "startRate": _minutely(stretches[0].begin),
                "timeUnit": "1m",
                "preAllocatedVUs": connections,
                "stages": stages,
            }
        },
        "thresholds": {"dropped_iterations": ["count<1"], "checks": ["rate>0.99"]},
    }


def _minutely(rate: float) -> int:
    return round(rate * 60)


def _request(each: Prepared) -> dict[str, Any]:
    return {
        "name": each.name,
        "method": each.method,
        "target": each.target,
        "headers": {
            **({"content-type": "application/json"} if each.body else {}),
            **dict(each.headers),
        },
        "body": each.body.decode() if each.body else None,
        "weight": each.weight,
        "statuses": list(each.assertion.status),
    }
