"""No tracked file knows the machine on which it was written, or a package server: a checkout works anywhere."""

import re
from collections.abc import Iterator, Sequence

import pytest

from tests.tidy.house import Source, files, snippet

# In halves, so that this file does not break its own rule.
SERVERS = ("py" + "pi.org", "python" + "hosted.org", "proxy.go" + "lang.org", "sum.go" + "lang.org", "npm" + "js.org")
PLACES = ("work", "root", "home", "Users")
_SERVER = re.compile("|".join(map(re.escape, SERVERS)), re.IGNORECASE)
# A folder called me is anybody's.
_PLACE = re.compile(rf"(?<![\w./~}}\])-])/(?:{'|'.join(PLACES)})/(?!me/)\w")


def servers(sources: Sequence[Source]) -> Iterator[str]:
    for source in sources:
        for number, line in enumerate(source.text.splitlines(), 1):
            if found := _SERVER.search(line):
                yield f"{source.at(number)}: {found[0]}; leave it to the tool's own configuration"


def places(sources: Sequence[Source]) -> Iterator[str]:
    for source in sources:
        for number, line in enumerate(source.text.splitlines(), 1):
            if found := _PLACE.search(line):
                yield f"{source.at(number)}: {found[0]}…; this path is there on one machine only"


def test_no_file_names_a_package_server() -> None:
    assert list(servers(files())) == []


def test_no_file_names_a_place_of_one_machine() -> None:
    assert list(places(files())) == []


@pytest.mark.parametrize("server", SERVERS)
def test_servers_are_found(server: str) -> None:
    assert len(list(servers(snippet(f"# one\nindex = 'https://{server.upper()}/simple'\n")))) == 1


@pytest.mark.parametrize("place", PLACES)
def test_places_are_found(place: str) -> None:
    assert len(list(places(snippet(f"cache = '/{place}/ann/cache'\n")))) == 1


@pytest.mark.parametrize("text", ["/var/log/x", "src/home/x", "~/work/x", "https://example.com/root/x", "/home/me/x"])
def test_other_paths_are_fine(text: str) -> None:
    assert list(places(snippet(f"path = '{text}'\n"))) == []
