"""Random pages and random actions: nothing but `PageError` ever comes out, nothing leads out, and the same gives the same."""

import html
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import jsonschema_rs
import orjson
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agent_gym.browser import SNAPSHOT_SCHEMA, InProcessPage, PageError, PageSnapshot

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

ORIGIN = "https://retail.example"
SCHEMA = jsonschema_rs.Draft202012Validator(SNAPSHOT_SCHEMA)
PATHS = ["/", "/a", "/b/c"]
TYPES = (
    "text search tel url email password number range date month week time datetime-local color checkbox radio file hidden submit image "
    "reset button wat"
)
TAGS = (
    "a a a area button button input input input input textarea select option optgroup form form label details summary fieldset legend "
    "datalist div p h1 ul li table tr td th nav iframe script base svg template noscript dialog img"
)

texts = st.one_of(st.sampled_from(["", "x", "Save", "1", "2024-02-29", "a@b.c", "a\nb", "é \N{SNOWMAN} 😀"]), st.text(max_size=8))
urls = st.one_of(
    st.sampled_from(
        [*PATHS, "", "#", "#x", "?q=1", "c", "../a", "/redirect", "/away", "/file", "/post", "/none", "/text", "about:blank", "/a b\ud800"]
    ),
    st.sampled_from(
        [
            "https://evil.example/",
            "//evil.example",
            "///evil",
            "https:evil",
            "\\\\evil",
            "javascript:x()",
            "data:,x",
            "mailto:x",
            "file:///x",
        ]
    ),
    st.text("ahtps:/\\.@#?%2e[]é \n", max_size=12),
)
names = st.sampled_from(["a", "b", "", "_charset_", "é"])
ids = st.sampled_from(["i", "j", "f", ""])
attributes = st.one_of(
    st.sampled_from(
        ["hidden", "disabled", "readonly", "required", "checked", "multiple", "novalidate", "open", "selected", "autofocus", "download"]
    ).map(lambda name: (name, "")),
    st.tuples(st.just("id"), ids),
    st.tuples(st.sampled_from(["for", "form", "aria-labelledby", "list"]), ids),
    st.tuples(st.just("name"), names),
    st.tuples(st.sampled_from(["href", "action", "formaction", "src"]), urls),
    st.tuples(st.sampled_from(["method", "formmethod"]), st.sampled_from(["get", "post", "dialog", "wat"])),
    st.tuples(st.sampled_from(["enctype", "formenctype"]), st.sampled_from(["multipart/form-data", "text/plain", "wat"])),
    st.tuples(st.sampled_from(["target", "formtarget"]), st.sampled_from(["_blank", "_self", "side", "_top"])),
    st.tuples(st.just("type"), st.sampled_from(TYPES.split())),
    st.tuples(
        st.sampled_from(["value", "min", "max", "step", "size", "minlength", "maxlength", "tabindex", "pattern", "label"]),
        st.one_of(texts, st.sampled_from(["-1", "0", "5", "1e400", "any", "2024-W09", "23:59", "#abcdef", "[a-z]+", "("])),
    ),
    st.tuples(st.sampled_from(["role", "aria-label", "title", "placeholder", "alt", "dirname", "rel", "onclick", "style", "dir"]), texts),
    st.tuples(st.just("style"), st.just("display: none")),
    st.tuples(st.just("contenteditable"), st.sampled_from(["", "true", "false"])),
)
tags = st.sampled_from(TAGS.split())


def element(tag: str, given_attributes: list[tuple[str, str]], children: list[str]) -> str:
    written = "".join(f' {name}="{html.escape(value)}"' for name, value in given_attributes)
    return f"<{tag}{written}>" if tag in ("input", "base", "img", "area") else f"<{tag}{written}>{''.join(children)}</{tag}>"


trees = st.recursive(
    st.one_of(texts.map(html.escape), st.builds(element, tags, st.lists(attributes, max_size=5), st.just([]))),
    lambda inner: st.builds(element, tags, st.lists(attributes, max_size=4), st.lists(inner, max_size=4)),
    max_leaves=20,
)
plain = st.sampled_from(
    [
        "<a href=/a>a</a><a href=/b/c target=_blank>b</a><a href='#x'>x</a>",
        "<a href=//evil.example/ target=side>out</a><a href=/file download>save</a><a href=/redirect>on</a>",
        "<form action=/post method=post><input name=a required><select name=b><option>x<option>Save</select><button>Save</button></form>",
        "<form method=post enctype=multipart/form-data><input type=file name=a multiple><input type=email name=b><button>Save</button>",
        "<form action=?q><label>x<input name=q></label><input type=hidden name=b value=2></form>",
        "<form id=f action=/b/c><input type=checkbox name=a><input type=radio name=b><input type=radio name=b><input type=reset>",
        "<details><summary>s</summary><textarea name=a form=f></textarea></details><button form=f>f</button>",
        "<label for=i tabindex=0>L</label><input id=i type=date min=2024-01-01><select multiple><option>x<option>1</select>",
    ]
)
pages = st.tuples(st.lists(st.one_of(plain, trees), min_size=2, max_size=6).map("".join), plain).map("".join)
bids = st.one_of(st.integers(0, 99), st.integers(0, 99), st.integers(0, 99), st.sampled_from(["0", "1", "7", "99"]), st.text(max_size=3))
keys = st.sampled_from(
    ["Enter", "Space", "Tab", "Shift+Tab", "Backspace", "Delete", "ArrowUp", "ArrowDown", "Control+A", "x", "5", "F1", "", "Shift+"]
)
actions = st.one_of(
    st.tuples(st.just("click"), bids),
    st.tuples(st.sampled_from(["click", "dblclick", "hover", "focus"]), bids),
    st.tuples(st.just("fill"), bids, st.one_of(texts, st.sampled_from(["a" * 100_001, "\ud800"]))),
    st.tuples(st.just("press"), bids, keys),
    st.tuples(st.just("check"), bids, st.booleans()),
    st.tuples(st.just("select"), bids, st.lists(texts, max_size=2)),
    st.tuples(st.just("upload"), bids, st.lists(st.sampled_from(["a.txt", "/etc/passwd", ""]), max_size=2)),
    st.tuples(st.just("goto"), urls),
    st.tuples(st.just("scroll"), st.floats(), st.floats()),
    st.tuples(st.sampled_from(["go_back", "go_forward", "new_tab", "close_tab"])),
    st.tuples(st.just("focus_tab"), st.integers(-1, 3)),
)


class Site:
    """Serves the given pages, and remembers whom it was asked as."""

    def __init__(self, served: list[str]) -> None:
        self.served = dict(zip(PATHS, served, strict=True))
        self.asked: list[str] = []

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        self.asked.append(f"{environ['wsgi.url_scheme']}://{environ['HTTP_HOST']}")
        self.asked.append(f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}?{environ['QUERY_STRING']} {environ['wsgi.input'].read()!r}")
        status, header = {
            "/redirect": ("302 Found", ("Location", "/a#x")),
            "/away": ("307 Temporary Redirect", ("Location", "https://evil.example/")),
            "/file": ("200 OK", ("Content-Type", "image/png")),
            "/none": ("204 No Content", ("X-Nothing", "here")),
            "/text": ("404 Not Found", ("Content-Type", "text/plain")),
        }.get(environ["PATH_INFO"], ("200 OK", ("Content-Type", "text/html")))
        start_response(status, [header])
        return [self.served.get(environ["PATH_INFO"], self.served["/"]).encode("utf-8", "replace")]


def meant(snapshot: PageSnapshot, name: str, bid: object) -> object:
    """A number stands for an element: an odd one for one that the action is for."""
    if not isinstance(bid, int) or name in ("scroll", "focus_tab"):
        return bid
    fit = {"select": "select_option", "upload": "upload_file", "press": "fill"}.get(name, name)
    elements = [element for element in snapshot.elements if fit in element.actions] if bid % 2 else []
    elements = elements or list(snapshot.elements)
    return elements[bid % len(elements)].bid if elements else str(bid)


def play(served: list[str], does: list[tuple[Any, ...]]) -> tuple[list[dict[str, Any]], list[str]]:
    """What is seen after each action, and what the site was asked."""
    site = Site(served)
    page = InProcessPage(site, ORIGIN, files={"a.txt": b"one"})
    seen = [page.snapshot().to_dict()]
    for name, *arguments in does:
        arguments[:1] = [meant(page.snapshot(), name, argument) for argument in arguments[:1]]
        act: Callable[..., None] = getattr(page, name)
        error = ""
        try:
            act(*arguments)
        except PageError as raised:
            error = str(raised)
        snapshot = page.snapshot()
        assert snapshot is page.snapshot()
        assert snapshot.error == error.encode(errors="replace").decode()
        seen.append(snapshot.to_dict())
    return seen, site.asked


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.lists(pages, min_size=3, max_size=3), st.lists(actions, min_size=5, max_size=20))
@example(["<form><a href='//evil.example'>x</a><button formaction='https:\\\\evil'>y</button>"] * 3, [("click", 0), ("click", 1)])
def test_any_page_under_any_actions(served: list[str], does: list[tuple[Any, ...]]) -> None:
    seen, asked = play(served, does)
    things: dict[str, tuple[str, str]] = {}
    for snapshot in seen:
        SCHEMA.validate(orjson.loads(orjson.dumps(snapshot)))
        for tab in snapshot["tabs"]:
            assert tab["url"] == "about:blank" or tab["url"].startswith(f"{ORIGIN}/")
        assert snapshot["url"] in [tab["url"] for tab in snapshot["tabs"] if tab["active"]]
        assert len({each["bid"] for each in snapshot["elements"]}) == len(snapshot["elements"])
        for each in snapshot["elements"]:
            thing = (each["role"], each.get("url", ""))
            assert things.setdefault(each["bid"], thing) == thing
    assert set(asked[::2]) == {ORIGIN}
    assert play(served, does) == (seen, asked)
