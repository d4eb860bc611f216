"""TLS to the API server: whom we trust and how we show who we are. Called by kube.transport.

TLS 1.2 at least. Private keys touch the disk only where the ssl module leaves no choice: in a directory that only we
can read, for the time of one load.
"""

import ssl
from pathlib import Path
from tempfile import TemporaryDirectory

from pyjobset.errors import UsageError
from pyjobset.kube.cluster import ClusterConfig
from pyjobset.kube.credentials import Certificate


def context(config: ClusterConfig, certificate: Certificate | None) -> ssl.SSLContext:
    """Raises UsageError for a CA or a certificate that cannot be used."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.set_alpn_protocols(["http/1.1"])
    if not config.is_verified:
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    elif config.authority:
        try:
            made.load_verify_locations(cadata=config.authority.decode("ascii"))
        except (ssl.SSLError, ValueError) as error:
            raise UsageError(f"context {config.context!r}: certificate-authority is not a PEM certificate") from error
    else:
        made.load_default_certs()
    if certificate is not None:
        _load(made, certificate, config)
    return made


def _load(made: ssl.SSLContext, certificate: Certificate, config: ClusterConfig) -> None:
    with TemporaryDirectory(prefix="jobset-") as directory:  # 0700
        chain, key = Path(directory, "chain.pem"), Path(directory, "key.pem")
        for path, content in ((chain, certificate.chain), (key, certificate.key)):
            path.touch(mode=0o600, exist_ok=False)
            path.write_bytes(content)
        try:
            # A key with a passphrase would ask at the terminal; a password callback makes it an error.
            made.load_cert_chain(chain, key, password=lambda: b"")
        except (ssl.SSLError, ValueError) as error:
            raise UsageError(
                f"context {config.context!r}: the client certificate and its key cannot be used together"
            ) from error
