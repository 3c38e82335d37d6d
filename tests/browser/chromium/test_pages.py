"""What is on a page: names that get in the way, frames, what nobody can see, scripts that change what scripts rely on."""

from tests.browser.chromium.conftest import Open
from tests.browser.chromium.test_engine import bid, value
from tests.browser.toy_site import Site

FIELDS = ["attributes", "childNodes", "checkVisibility", "isConnected", "localName", "ownerDocument", "parentNode", "shadowRoot"]
FORMS = ["activeElement", "body", "defaultView", "documentElement", "elementFromPoint", "querySelector", "readyState", "title"]


def test_forms_and_fields_may_have_any_name(open_page: Open) -> None:
    fields = "".join(f"<input name={name} aria-label={name}>" for name in FIELDS)
    forms = "".join(f"<form name={name}><button type=button>{name}</button></form>" for name in FORMS)
    page = open_page(Site(a=f"<title>T</title><form tabindex=0 aria-label=Form>{fields}</form>{forms}"), "/a")
    page.click(bid(page, "Form"))
    page.fill(bid(page, "childNodes"), "x")
    page.click(bid(page, "body"))
    assert (value(page, "childNodes"), page.snapshot().title) == ("x", "T")
    assert {element.name for element in page.snapshot().elements} == {"Form", *FIELDS, *FORMS}
    assert bid(page, "body") in page.boxes()
