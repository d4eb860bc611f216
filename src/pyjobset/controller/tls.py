"""What the servers of the controller offer to clients: the oldest TLS version, and the cipher suites of TLS 1.2.

Names are those of Go's crypto/tls, as the Configuration has them; here they become OpenSSL's. Called where a serving
certificate is loaded, and by the Configuration's checks. Suites of TLS 1.3 are always all on, as in Go.
"""

import ssl

from pyjobset.controller.options import TLS_1_3, Tls

SUITES = {
    f"TLS_ECDHE_{key}_WITH_{go}": f"ECDHE-{key}-{openssl}"
    for key in ("ECDSA", "RSA")
    for go, openssl in (
        ("AES_128_GCM_SHA256", "AES128-GCM-SHA256"),
        ("AES_256_GCM_SHA384", "AES256-GCM-SHA384"),
        ("CHACHA20_POLY1305_SHA256", "CHACHA20-POLY1305"),
        ("CHACHA20_POLY1305", "CHACHA20-POLY1305"),
        ("AES_128_CBC_SHA", "AES128-SHA"),
        ("AES_256_CBC_SHA", "AES256-SHA"),
    )
}
"""Those of TLS 1.2 that Go calls secure. CHACHA20_POLY1305 is an old name that Kubernetes still takes."""
ALWAYS_ON = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
INSECURE = (
    "TLS_RSA_WITH_RC4_128_SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
)
"""Known to Go, and on by no default."""


def restrict(context: ssl.SSLContext, tls: Tls) -> None:
    """Where only suites of TLS 1.3 are named, TLS 1.2 has none to offer."""
    names = [SUITES[name] for name in tls.cipher_suites if name in SUITES]
    is_1_3 = tls.min_version == TLS_1_3 or (tls.cipher_suites and not names)
    context.minimum_version = ssl.TLSVersion.TLSv1_3 if is_1_3 else ssl.TLSVersion.TLSv1_2
    if names:
        context.set_ciphers(":".join(names))


def is_available(name: str) -> bool:
    """The OpenSSL of this machine has the suite."""
    try:
        restrict(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), Tls(cipher_suites=(name,)))
    except ssl.SSLError:
        return False
    return True
