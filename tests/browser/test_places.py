"""Where the in-process engine goes, and that nothing takes it out of the site."""

import pytest

from agent_gym.browser import Blocked, NotAllowed, PageError
from tests.browser.toy_site import ORIGIN, Site, bid, redirect, refused


def test_first_page() -> None:
    page = Site().open()
    snapshot = page.snapshot()
    assert (snapshot.url, snapshot.title, snapshot.status) == (f"{ORIGIN}/", "Home", 200)
    assert snapshot.tabs == ({"title": "Home", "url": f"{ORIGIN}/", "active": True},)
    assert [(element.bid, element.role, element.name, element.url) for element in snapshot.elements] == [("1", "link", "A", "/a")]
    assert page.snapshot() is snapshot


@pytest.mark.parametrize(
    ("url", "asked"),
    [
        ("/a", "/a"),
        ("b?x=1", "/shop/b?x=1"),
        ("?x=1", "/shop/cart?x=1"),
        ("../a", "/a"),
        ("/shop/../../a/./b/..", "/a/"),
        ("/%2e%2E/a", "/a"),
        ("https://retail.example/a", "/a"),
        ("HTTPS://RETAIL.EXAMPLE:443/a", "/a"),
        ("https:///retail.example/a", "/a"),
        ("//retail.example/a", "/a"),
        ("https:a", "/shop/a"),
        ("  /a  ", "/a"),
        ("/a b/é?q=é ü#x", "/a b/é?q=%C3%A9%20%C3%BC"),
        ("/search?q=a/../b&r=\N{SNOWMAN}", "/search?q=a/../b&r=%E2%98%83"),
        ("", "/shop/cart?y=2"),
        ("?", "/shop/cart"),
    ],
)
def test_goto(url: str, asked: str) -> None:
    site = Site()
    page = site.open("/shop/cart?y=2")
    page.goto(url)
    assert site.asked == [f"GET {asked}"]
    assert page.snapshot().url.startswith(f"{ORIGIN}/")


OUTSIDE = [
    "https://evil.example/",
    "http://retail.example/",
    "https://retail.example:8443/",
    "https://retail.example:99999999/",
    "https://retail.example@evil.example/",
    "https://user@retail.example/",
    "https://user:pass@retail.example/",
    "https://retail.example.evil.example/",
    "https://retail.example./",
    "https://evil.example/https://retail.example/",
    "https://evil.example#https://retail.example/",
    "https://evil.example?.retail.example/",
    "//evil.example",
    "///evil.example",
    "////evil.example/a",
    "https:///evil.example",
    "https:////evil.example",
    "//retail.example:443@evil.example",
    "https://[::1]/",
    "https://127.0.0.1/",
    "https://ｒetail.example/",
    "https://retail.example%2eevil.example/",
    "javascript:alert(1)",
    "JavaScript:alert(1)",
    "data:text/html,<h1>x",
    "file:///etc/passwd",
    "FILE:/etc/passwd",
    "blob:https://retail.example/1",
    "view-source:https://retail.example/",
    "about:config",
    "about:blank#x",
    "chrome://settings",
    "ftp://retail.example/",
    "ws://retail.example/",
    "mailto:a@retail.example",
    "retail.example:443/",
    "http:a",
]
MALFORMED = [
    "\\\\evil.example",
    "/\\evil.example",
    "https:\\\\evil.example",
    "https://retail.example\\@evil.example",
    "https://[::1",
    "https://retail.example\t.evil.example/",
    "ht\ntps://evil.example",
    "java\nscript:alert(1)",
    "/a\x00b",
    "/a\rb",
    "/\x7f",
    "https://",
    "/" + "a" * 10_000,
]


@pytest.mark.parametrize(("url", "kind"), [*((url, NotAllowed) for url in OUTSIDE), *((url, Blocked) for url in MALFORMED)])
def test_nothing_leads_out(url: str, kind: type[PageError]) -> None:
    site = Site()
    page = site.open("/a")
    refused(page, lambda: page.goto(url), kind)
    assert site.asked == []
    if "\n" not in url and "\r" not in url:  # werkzeug refuses such headers
        site.pages["/away"] = redirect(url)
        refused(page, lambda: page.goto("/away"), kind)
        assert site.asked == ["GET /away"]


@pytest.mark.parametrize(
    "url", ["https://evil.example/", "//evil.example", "data:text/html,x", "file:///etc/passwd", "https://u@retail.example/"]
)
def test_links_forms_and_bases_stay_inside(url: str) -> None:
    site = Site(
        page=f"<a href='{url}'>link</a><form action='{url}' method=post><button>post</button></form>"
        f"<form><button formaction='{url}'>get</button></form><a href='{url}' target=_blank>tab</a><a href='{url}' download>save</a>",
        base="<base href='https://evil.example/x/'><a href=y>relative</a><a href=/y>absolute</a><form><button>home</button></form>",
    )
    page = site.open("/page")
    for name in ("link", "post", "get", "tab", "save"):
        refused(page, lambda name=name: page.click(bid(page, name)), NotAllowed)  # type: ignore[misc]
    page.goto("/base")
    for name in ("relative", "absolute"):
        assert "outside" in refused(page, lambda name=name: page.click(bid(page, name)), NotAllowed)  # type: ignore[misc]
    page.click(bid(page, "home"))  # no action: the page itself, not its base
    assert site.asked == ["GET /base", "GET /base"]


def test_links() -> None:
    site = Site(
        a="<a href=/b>b</a><a href='javascript:go()'>script</a><a href='mailto:x@y.z'>mail</a><a>nowhere</a>"
        "<map name=m><area href=/c alt=area></map><p>text <b>bold</b></p>",
        b="<base href=/deep/er/><a href=page>p</a>",
    )
    page = site.open("/a")
    assert "needs the Chromium engine" in refused(page, lambda: page.click(bid(page, "script")), Blocked)
    refused(page, lambda: page.click(bid(page, "mail")), NotAllowed)
    page.click(bid(page, "b"))
    assert page.snapshot().elements[0].url == "/deep/er/page"
    page.click(bid(page, "p"))
    assert site.asked == ["GET /b", "GET /deep/er/page"]
    assert site.requests[-1].referrer == f"{ORIGIN}/b"


def test_noreferrer() -> None:
    site = Site(a="<a href=/b rel=noreferrer>b</a>", b="")
    page = site.open("/a")
    page.click("1")
    assert site.requests[-1].referrer is None
