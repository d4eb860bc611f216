"""Which objects a label or field selector means, in the model."""

import pytest

from pyjobset.simulation.selectors import chosen

OBJECT = {"metadata": {"name": "a", "namespace": "ns", "labels": {"colour": "red", "size": ""}}}


@pytest.mark.parametrize(
    ("labels", "fields", "is_chosen"),
    [
        ("", "", True),
        ("colour", "", True),
        ("colour=red", "", True),
        ("colour==red", "", True),
        ("colour=blue", "", False),
        ("shape", "", False),
        ("size=", "", True),
        ("colour=", "", False),
        ("colour,size", "", True),
        ("colour=red,shape", "", False),
        ("", "metadata.name=a", True),
        ("", "metadata.name==a", True),
        ("", "metadata.name=b", False),
        ("", "metadata.namespace=ns,metadata.name=a", True),
        ("colour=blue", "metadata.name=a", False),
    ],
)
def test_selectors(labels: str, fields: str, is_chosen: bool) -> None:
    assert chosen(labels, fields)(OBJECT) is is_chosen


def test_an_object_without_labels() -> None:
    assert not chosen("colour")({"metadata": {"name": "a"}})


@pytest.mark.parametrize(
    ("labels", "fields"),
    [("!colour", ""), ("colour in (red)", ""), ("colour!=red", ""), ("", "metadata.name!=a"), ("", "status.phase=x")],
)
def test_what_is_not_modelled_is_refused_loudly(labels: str, fields: str) -> None:
    with pytest.raises(NotImplementedError):
        chosen(labels, fields)
