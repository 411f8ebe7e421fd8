"""Identifiers are told from words: by twenty schemes of the one, and a list of the other."""

from __future__ import annotations

import base64
import random
import string
import uuid
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.fit.protocol.identifiers import is_identifier
from ldfi.fit.protocol.points import template_path, template_words

_TEXT = """
api api2 v1 v2 v1beta1 v2alpha1 v1p1beta1 v1p4beta1 oauth2 oauth2callback s3 s3buckets
ec2instances mp3 mp4 k8s i18n l10n a11y b2b b2c p2p web3 web3auth utf8 base64 base64decode
oauth md5 http2 ipv4 ipv6 log4j log4j2config covid19 co2 h2console 3d 2fa mfa2 step1 part2
top10 q1 q4 fy26 en-US en_GB pt-BR zh-Hans de_CH USD EUR CHF US DE iso8601x GetUser
getUserById getV2UserInfo getV2UserInfoList getV2UserProfile OAuth2Callback S3BucketPolicy
EC2InstanceMetadata Web3AuthProvider Web3AuthSdk Log4jConfiguration Base64Encoder
v2Beta1Users K8sPodLogs Ipv4CidrSet createB2BPartner HTTP2_SETTINGS MAX_RETRY_2 X-Request-Id
red-shoes terms-and-conditions world-cup-2026 catch-22 area-51 chapter-11 route-66
top-100-movies 3d-models 404-page product-3d-viewer section-8 catch22 favicon.ico robots.txt
sitemap.xml app.js main.css index.html jquery.min.js bootstrap.bundle.min.js well-known
apple-touch-icon manifest.json openapi.json swagger-ui wp-content wp-admin wp-json graphql
healthz readyz livez metrics actuator prometheus users orders checkout shopping_cart
payment_methods deadbeef facade decade cafe accede effaced
temporal.api.workflowservice.v1.WorkflowService
google.cloud.bigquery.storage.v1beta2.BigQueryWrite
envoy.service.discovery.v3.AggregatedDiscoveryService
opentelemetry.proto.collector.trace.v1.TraceService grpc.reflection.v1alpha.ServerReflection
grpc.health.v1.Health hipstershop.CartService com.example.shop.v20260301.Orders
kubernetes.io k8s.gcr.io admissionregistration.k8s.io io.k8s.api.apps.v1.StatefulSet
AggregatedDiscoveryService StreamAggregatedResources ListFoldersAndDocumentsInWorkspace
titles similar recommendations oauth-authorization-server openid-configuration ABCDEFGHIJ
SETTINGS CHECKOUT ADMINPANEL B2BPORTAL API2 SOAP12 SKU ASIN ISBN-13 h1 iphone15
iphone-15-pro galaxy-s24-ultra ps5 windows11 macbook-m3 gpt-4o gpt-4o-mini claude-3 llama3
us-east-1 eu-west-2 eu-central-1 us-west-2a ap-southeast-1 westus2 northeurope
asia-northeast1 r5.large m5.2xlarge t3.micro n1-standard-4 e2-medium postgres15 python3.11
java17 node18 net8 customer-service-2 orders-v2 payments-v1 shop-eu2 mail2 redis-0
kafka-broker-1 frontend-proxy cluster1 zone-a db1 rest json rpc2 json2 soap11 saml2 acs slo
sso oidc scim2 Users Groups ServiceProviderConfig ResourceTypes Schemas Bulk Me vpc2
pay2play end2end-tests peer2peer one2one many2many text2speech speech2text img2img m2m e2e
i2c d3js three.js vue3 ecma262x utf8mb4 x86-64 amd64 arm64v8 linux64 win32 rs256x es256k
ed25519x aes128gcm
"""
WORDS = _TEXT.split()
"""Segments of real routes, names of packages, regions, machines, files and products."""

ALL = string.ascii_letters + string.digits
NO_LOOKALIKES = "".join(sorted(set(ALL) - set("0OIl")))
SMALL = string.ascii_lowercase + string.digits
CAPITALS = string.ascii_uppercase + string.digits
CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

_rng = random.Random(39)


def drawn(letters: str, size: int) -> str:
    return "".join(_rng.choices(letters, k=size))


def jwt() -> str:
    parts = (base64.urlsafe_b64encode(_rng.randbytes(n)).decode() for n in (27, 60, 32))
    return ".".join(part.rstrip("=") for part in parts)


def any_uuid() -> str:
    return str(uuid.UUID(int=_rng.getrandbits(128)))


SCHEMES: dict[str, tuple[float, Callable[[], str]]] = {
    "number": (1, lambda: str(_rng.randrange(10**12))),
    "date": (1, lambda: f"2026-{_rng.randrange(1, 13):02}-17"),
    "uuid": (1, any_uuid),
    "uuid without dashes": (1, lambda: f"{_rng.getrandbits(128):032x}"),
    "ulid": (1, lambda: "01" + drawn(CROCKFORD, 24)),
    "ulid, small": (1, lambda: "01" + drawn(CROCKFORD.lower(), 24)),
    "sha-1": (1, lambda: f"{_rng.getrandbits(160):040x}"),
    "git's short hash": (0.95, lambda: f"{_rng.getrandbits(28):07x}"),
    "MongoDB's object": (1, lambda: f"{_rng.getrandbits(96):024x}"),
    "nanoid": (0.8, lambda: drawn(ALL + "_-", 21)),
    "short uuid in base58": (0.8, lambda: drawn(NO_LOOKALIKES, 22)),
    "ksuid": (0.88, lambda: drawn(ALL, 27)),
    "cuid": (0.95, lambda: "c" + drawn(SMALL, 24)),
    "cuid2": (0.95, lambda: "k" + drawn(SMALL, 23)),
    "xid": (0.95, lambda: drawn("0123456789abcdefghijklmnopqrstuv", 20)),
    "ten capitals and digits": (0.9, lambda: drawn(CAPITALS, 10)),
    "ASIN": (0.95, lambda: "B0" + drawn(CAPITALS, 8)),
    "vehicle": (0.95, lambda: drawn("ABCDEFGHJKLMNPRSTUVWXYZ0123456789", 17)),
    "base32": (0.9, lambda: drawn(string.ascii_uppercase + "234567", 16)),
    "TypeID": (1, lambda: "user_01" + drawn(CROCKFORD.lower(), 24)),
    "Stripe": (0.55, lambda: "cus_" + drawn(ALL, 14)),
    "Firebase": (0.65, lambda: "-N" + drawn(ALL + "_-", 18)),
    "Airtable": (0.6, lambda: "rec" + drawn(ALL, 14)),
    "JWT": (1, jwt),
    "slug and number": (1, lambda: f"red-shoes-{_rng.randrange(10**4, 10**9)}"),
    "slug and hash": (0.95, lambda: f"my-first-post-{_rng.getrandbits(48):012x}"),
    "slug and uuid": (1, lambda: f"a-post-{any_uuid()}"),
    "number and slug": (1, lambda: f"{_rng.randrange(10**4, 10**9)}-red-shoes"),
    "e-mail address": (1, lambda: f"{drawn(SMALL, 5)}@example.org"),
}
"""Scheme → the share that a rule is sure of at least, and one drawn. The rest is learned."""


@pytest.mark.parametrize("scheme", SCHEMES)
def test_identifiers_are_told(scheme: str) -> None:
    share, make = SCHEMES[scheme]
    assert sum(is_identifier(make()) for _ in range(1_000)) >= 1_000 * share


@pytest.mark.parametrize("word", WORDS)
def test_words_stay(word: str) -> None:
    assert not is_identifier(word)
    assert template_path(f"/a/{word}/b") == f"/a/{word}/b"
    assert "." in word or template_words(word) == word  # there parts are looked at alone


@given(st.lists(st.sampled_from([w for w in WORDS if w.isalpha()]), min_size=1, max_size=6))
def test_words_of_letters_stay_however_they_are_put_together(words: list[str]) -> None:
    for together in ("-".join(words), "_".join(words), ".".join(words), "".join(words)[:25]):
        assert not is_identifier(together)


@given(st.text(max_size=80))
def test_any_text_is_one_or_the_other(text: str) -> None:
    assert is_identifier(text) in {True, False}


def test_a_long_path_of_a_stranger_is_read_in_no_time() -> None:
    for piece in ("a1", "1a-", "Aa0_", "0.", "a.b1", "-", "v1."):
        is_identifier(piece * 20_000)
