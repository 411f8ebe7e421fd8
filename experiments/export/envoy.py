"""Envoy: one filter that asks ``ldfi-proxy`` about the requests that carry a failure context.

The filter is put in once and stays. It is a composite one that makes nothing for a request without
a context, which never leaves Envoy: an external processor costs processor time even where a matcher
skips it. For the others it makes one, which has ``ldfi-proxy`` read the context, verify it and
answer. Where that is not there, or does not answer within :data:`PATIENCE`, Envoy goes on as if
there were no filter.

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


def cluster(host: str, port: int) -> dict[str, Any]:
    """Write where the processor is."""
    address = {"socket_address": {"address": host, "port_value": port}}
    options = "extensions.upstreams.http.v3.HttpProtocolOptions"
    return {
        "name": CLUSTER,
        "type": "STRICT_DNS",
        "connect_timeout": "0.250s",
        "typed_extension_protocol_options": {
            f"envoy.{options}": {
                "@type": f"{_TYPES}.{options}",
                "explicit_http_config": {"http2_protocol_options": {}},
            }
        },
        "load_assignment": {
            "cluster_name": CLUSTER,
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": address}}]}],
        },
    }


def _processor(caller: str) -> dict[str, Any]:
    return {
        "typed_config": {
            "@type": f"{_FILTERS}.ext_proc.v3.ExternalProcessor",
            "grpc_service": {
                "envoy_grpc": {"cluster_name": CLUSTER},
                "initial_metadata": [{"key": CALLER, "value": caller}],
            },
            "failure_mode_allow": True,
            "message_timeout": PATIENCE,
            "max_message_timeout": LONGEST,
            "processing_mode": {
                "request_header_mode": "SEND",
                "response_header_mode": "SKIP",
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
            "typed_config": {"name": "envoy.filters.http.ext_proc", **_processor(caller)},
        },
    }
    return {"predicate": carries, "on_match": {"action": ask}}
