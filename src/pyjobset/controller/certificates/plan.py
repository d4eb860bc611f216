"""Decides what the Secret of the webhooks should become, and which certificate this replica serves. Pure.

A new authority comes with a certificate by it, in one write, and beside the old authority. Each replica goes on with
the old certificate until every webhook configuration trusts the new authority; the old one is trusted some time longer.
So at no time does a replica serve what is not trusted. Called by certificates.keeper; it draws keys in `carry_out`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from pyjobset import pki
from pyjobset.controller.certificates.content import AUTHORITIES_MAX, Content, content
from pyjobset.pki import Certificate, Pair, Period, Subject

AUTHORITY = Subject("jobset-ca", "jobset")
SERVER = "jobset-webhook"


@dataclass(frozen=True, slots=True)
class Terms:
    """How long things last."""

    authority: timedelta = timedelta(days=3650)
    serving: timedelta = timedelta(days=365)
    backdated: timedelta = timedelta(hours=1)
    """A certificate is valid so long before it was made, for clocks that are behind ours."""
    settle: timedelta = timedelta(seconds=10)
    """For every API server to hear that a webhook configuration has changed."""
    retire: timedelta = timedelta(hours=1)
    """An authority is trusted so long after the next one was made: until no replica serves a certificate by it."""


@dataclass(frozen=True, slots=True)
class Plan:
    authority: Pair | None
    """None: a new one is made."""
    serving: Pair | None
    """None: a new one is made."""
    others: tuple[Certificate, ...]
    """Authorities to trust beside the one that signs."""
    changes: bool
    """The Secret is not so yet."""
    look_at: datetime
    """When the answer may be another one, if nothing else happens."""


@dataclass(frozen=True, slots=True)
class Served:
    pair: Pair
    issuer: Certificate


def decide(
    now_there: Content,
    hosts: frozenset[str],
    now: datetime,
    terms: Terms,
    *,
    found: Iterable[Certificate] = (),
    served: Certificate | None = None,
) -> Plan:
    """`hosts` are those that the API server asks, `found` the authorities that webhook configurations trust, `served`
    the one whose certificate this replica uses. That one is trusted on, whatever has become of the Secret."""
    authority, trusted = now_there.authority, now_there.trusted
    served = served if served is not None and now < served.period.end else None
    if authority is None or not _is_fresh(authority.certificate, now) or (served and served not in trusted):
        known = dict.fromkeys((*([served] if served else []), *trusted, *found))
        others = [c for c in known if c.is_authority and now < c.period.end]
        return Plan(None, None, tuple(others[: AUTHORITIES_MAX - 1]), changes=True, look_at=now)
    signer = authority.certificate
    retired_at = signer.period.begin + terms.backdated + terms.retire
    others = [c for c in trusted if c != signer and now < min(c.period.end, retired_at)]
    serving = now_there.serving
    if serving is None or now_there.issuer != signer or not _is_good(serving.certificate, hosts, now):
        serving = None
    leaves = [retired_at, *(c.period.end for c in others)] if others else []
    fresh_until = [_renewed_at(signer), *([_renewed_at(serving.certificate)] if serving else [])]
    return Plan(
        authority,
        serving,
        tuple(others),
        changes=serving is None or trusted != (signer, *others),
        look_at=min(*fresh_until, *leaves) if serving else now,
    )


def carry_out(plan: Plan, hosts: frozenset[str], now: datetime, terms: Terms) -> Content:
    """What the Secret becomes. Keys are drawn here."""
    begin = now - terms.backdated
    authority = plan.authority or pki.new_authority(AUTHORITY, Period(begin, now + terms.authority))
    signer = authority.certificate
    end = min(now + terms.serving, signer.period.end)
    serving = plan.serving or pki.issue(
        authority,
        Subject(SERVER, AUTHORITY.organization),
        Period(max(begin, signer.period.begin), end),
        hosts=sorted(hosts),
        is_client=False,
    )
    return content((signer, *plan.others), authority, serving)


def choose(
    current: Served | None,
    offered: Content,
    *,
    is_current_trusted: bool,
    offered_trusted_since: datetime | None,
    now: datetime,
    terms: Terms,
) -> Served | None:
    """What this replica serves from now on: what it has, or what the Secret offers. `offered_trusted_since`: since when
    every webhook configuration trusts the issuer of that; None is not yet."""
    pair, issuer = offered.serving, offered.issuer
    if pair is None or issuer is None or not pair.certificate.is_valid(now):
        return current
    served = Served(pair, issuer)
    if current is None or current.issuer == issuer or not current.pair.certificate.is_valid(now):
        return served
    if not is_current_trusted:
        return served
    has_settled = offered_trusted_since is not None and offered_trusted_since + terms.settle <= now
    return served if has_settled else current


def _is_good(serving: Certificate, hosts: frozenset[str], now: datetime) -> bool:
    return _is_fresh(serving, now) and serving.is_server and hosts <= serving.hosts


def _is_fresh(certificate: Certificate, now: datetime) -> bool:
    return certificate.is_valid(now) and now < _renewed_at(certificate)


def _renewed_at(certificate: Certificate) -> datetime:
    """After two thirds of its time."""
    period = certificate.period
    return period.begin + (period.end - period.begin) * 2 / 3
