"""Envoy: one filter that asks ``ldfi-proxy`` about the requests that carry a failure context.

The filter is put in once and stays. It is a composite one that makes nothing for a request without
a context, which never leaves Envoy: an external processor costs processor time even where a matcher
skips it. For the others it makes one, which has ``ldfi-proxy`` read the context, verify it and
answer. Where that is not there, or does not answer within :data:`PATIENCE`, Envoy goes on as if
there were no filter.

At a gateway, where requests come in, ``ldfi-proxy`` is the edge (:func:`gateway`): it is asked
about every request, and again about the headers of its answer. What it says shall be the baggage of
a request takes the place of what came in: where nobody answers, a request goes on without any, and
no context from outside comes in.

https://www.envoyproxy.io/docs/envoy/latest/configuration/http/http_filters/ext_proc_filter
https://www.envoyproxy.io/docs/envoy/latest/configuration/http/http_filters/composite_filter
"""

from __future__ import annotations

from typing import Any, Final

NAME: Final = "ldfi"
CLUSTER: Final = "ldfi_proxy"
PATIENCE: Final = "0.050s"
LONGEST: Final = "3600s"
"""What a processor may ask for instead: a delay takes its time. Envoy allows no more."""
CALLER: Final = "x-ldfi-caller"
"""Metadata of the call to the processor: whose requests these are."""
ONWARD: Final = "x-ldfi-baggage"
"""Where the edge writes the baggage with which a request goes on (fit/go/proxy/gateway.go)."""
EDGE: Final = "ldfi_edge"
"""The cluster of the processor that is the edge."""

_TYPES: Final = "type.googleapis.com/envoy"
_FILTERS: Final = f"{_TYPES}.extensions.filters.http"


def listener(caller: str, host: str, port: int) -> dict[str, Any]:
    """Write the filter, for the listener through which the caller's requests leave, and the cluster
    of the processor."""
    return {"http_filters": [http_filter(caller)], "clusters": [cluster(host, port)]}


def http_filter(caller: str) -> dict[str, Any]:
    """Write the filter; it stands in front of the router."""
    return {
        "name": NAME,
        "typed_config": {
            "@type": f"{_TYPES}.extensions.common.matching.v3.ExtensionWithMatcher",
            "extension_config": {
                "name": "envoy.filters.http.composite",
                "typed_config": {"@type": f"{_FILTERS}.composite.v3.Composite"},
            },
            "xds_matcher": {"matcher_list": {"matchers": [_asking(caller)]}},
        },
    }


def gateway(host: str, port: int) -> dict[str, Any]:
    """Write the filters, for the listener at which requests come in, and where the edge is."""
    return {"http_filters": gateway_filters(), "clusters": [cluster(host, port, EDGE)]}


def gateway_filters() -> list[dict[str, Any]]:
    """Write the filters of a gateway; they stand before all others that look at baggage."""
    said = {"key": "baggage", "value": f"%REQ({ONWARD})%"}
    in_its_place: list[dict[str, Any]] = [
        {"remove": "baggage"},
        {"append": {"header": said, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}},
        {"remove": ONWARD},
    ]
    return [
        _mutating("ldfi-outside", [{"remove": ONWARD}]),
        {"name": "ldfi-edge", **_asked(EDGE, answers=True)},
        _mutating("ldfi-inside", in_its_place),
    ]


def _mutating(name: str, steps: list[dict[str, Any]]) -> dict[str, Any]:
    """Write a filter that changes headers of requests."""
    return {
        "name": name,
        "typed_config": {
            "@type": f"{_FILTERS}.header_mutation.v3.HeaderMutation",
            "mutations": {"request_mutations": steps},
        },
    }


def cluster(host: str, port: int, name: str = CLUSTER) -> dict[str, Any]:
    """Write where the processor is."""
    address = {"socket_address": {"address": host, "port_value": port}}
    options = "extensions.upstreams.http.v3.HttpProtocolOptions"
    return {
        "name": name,
        "type": "STRICT_DNS",
        "connect_timeout": "0.250s",
        "typed_extension_protocol_options": {
            f"envoy.{options}": {
                "@type": f"{_TYPES}.{options}",
                "explicit_http_config": {"http2_protocol_options": {}},
            }
        },
        "load_assignment": {
            "cluster_name": name,
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": address}}]}],
        },
    }


def _asked(name: str, *, caller: str = "", answers: bool = False) -> dict[str, Any]:
    """Have the processor behind a cluster asked about the headers of requests and, on demand, of
    answers."""
    told = {"initial_metadata": [{"key": CALLER, "value": caller}]} if caller else {}
    return {
        "typed_config": {
            "@type": f"{_FILTERS}.ext_proc.v3.ExternalProcessor",
            "grpc_service": {"envoy_grpc": {"cluster_name": name}, **told},
            "failure_mode_allow": True,
            "message_timeout": PATIENCE,
            "max_message_timeout": LONGEST,
            "processing_mode": {
                "request_header_mode": "SEND",
                "response_header_mode": "SEND" if answers else "SKIP",
                "request_trailer_mode": "SKIP",
                "response_trailer_mode": "SKIP",
            },
        }
    }


def _asking(caller: str) -> dict[str, Any]:
    """Match what carries a context, for which the processor is asked. The text alone is looked at:
    the processor reads the entry."""
    header = {
        "name": "baggage",
        "typed_config": {
            "@type": f"{_TYPES}.type.matcher.v3.HttpRequestHeaderMatchInput",
            "header_name": "baggage",
        },
    }
    carries = {"single_predicate": {"input": header, "value_match": {"contains": "fit="}}}
    ask = {
        "name": "ask",
        "typed_config": {
            "@type": f"{_FILTERS}.composite.v3.ExecuteFilterAction",
            "typed_config": {
                "name": "envoy.filters.http.ext_proc",
                **_asked(CLUSTER, caller=caller),
            },
        },
    }
    return {"predicate": carries, "on_match": {"action": ask}}
