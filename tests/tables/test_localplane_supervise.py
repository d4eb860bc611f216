"""What a person hears while a component takes its time. Nothing is started."""

from pathlib import Path

import pytest

from pyjobset.localplane import supervise
from pyjobset.localplane.components import ETCD, PORTS, Component, Places, components
from pyjobset.localplane.options import PlaneOptions
from pyjobset.localplane.supervise import Supervisor


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path, tmp_path)


def etcd(places: Places) -> Component:
    ports = dict.fromkeys(PORTS, 1)
    return next(c for c in components(PlaneOptions(), ports, places) if c.name == ETCD)


@pytest.mark.parametrize(("looks", "said"), [(1, 0), (3, 2)])
def test_what_is_waited_for_is_said(places: Places, monkeypatch: pytest.MonkeyPatch, looks: int, said: int) -> None:
    answers = iter([False] * (looks - 1) + [True])
    monkeypatch.setattr(supervise, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(Supervisor, "ready", lambda _self, _component: next(answers))
    supervisor = Supervisor(places)
    monkeypatch.setattr(type(supervisor.daemons[ETCD]), "pid", lambda _self: 1)
    heard: list[str] = []
    supervisor.wait([etcd(places)], say=heard.append)
    assert heard == ["Still waiting for etcd"] * said
