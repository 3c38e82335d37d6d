"""A desk at the retail world's web site: a browser's worth of it, and how its pages are read and found to be well made."""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import jsonschema_rs
from lxml import html
from werkzeug.test import Client, TestResponse

from agent_gym.core import ToolResult
from agent_gym.envs.worlds.retail import RETAIL
from agent_gym.envs.worlds.retail.site import application
from agent_gym.world import World, carry_out

BASE = RETAIL.build(11)
VALIDATORS = {name: jsonschema_rs.Draft202012Validator(dict(operation.spec.parameters)) for name, operation in RETAIL.operations.items()}


class Desk:
    """A browser's worth of the site on a world of its own, with the operations that it called."""

    def __init__(self) -> None:
        self.world = World(RETAIL.schema, BASE)
        self.calls: list[tuple[str, Mapping[str, Any]]] = []
        self.answer: Callable[[str], ToolResult | None] = lambda _: None
        self.application = application(self.operate)
        self.client = Client(self.application)

    def operate(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        VALIDATORS[name].validate(dict(arguments))
        self.calls.append((name, dict(arguments)))
        return self.answer(name) or carry_out(self.world, RETAIL.operations[name], arguments, math.inf)

    def get(self, path: str, status: int = 200) -> Any:
        """The page at a path, as a checked document."""
        self.calls.clear()
        return checked(self.client.get(path), status)

    def submit(self, page: Any, button: str, **fields: str) -> TestResponse:
        """Fills a page's form as a person does, by labels' field names and options' texts, and pushes its button."""
        (pushed,) = [one for one in page.iter("button") if name_of(one) == button]
        form = next(above for above in pushed.iterancestors() if above.tag == "form")
        for name, value in fields.items():
            control = form.xpath(f".//*[@name='{name}'][not(@type='hidden')]")[0]
            control.value = option(control, value) if control.tag == "select" else value
        self.calls.clear()
        send = self.client.post if form.method == "POST" else self.client.get
        values = dict(form.form_values())
        return send(form.action, data=values) if form.method == "POST" else send(form.action, query_string=values)

    def one(self, sql: str, *parameters: Any) -> dict[str, Any]:
        return self.world.query(f"{sql} LIMIT 1", parameters)[0]

    def names(self) -> list[str]:
        return [name for name, _ in self.calls]


def option(select: Any, text: str) -> str:
    (value,) = [one.get("value", one.text) for one in select.iter("option") if one.text == text]
    return str(value)


def name_of(element: Any) -> str:
    return " ".join((element.get("aria-label") or element.text_content()).split())


def checked(response: TestResponse, status: int) -> Any:
    """The document, once it is seen to be well made."""
    assert response.status_code == status, response.text
    assert response.content_type == "text/html; charset=utf-8"
    assert response.text.startswith("<!doctype html>")
    for tag in ("table", "tbody", "tr", "td", "dl", "dd", "form", "select", "div", "main", "nav"):
        assert len(re.findall(rf"<{tag}[ >]", response.text)) == response.text.count(f"</{tag}>"), tag
    page: Any = html.document_fromstring(response.text)
    ids = page.xpath("//@id")
    assert len(ids) == len(set(ids))
    assert len(page.xpath("//main")) == len(page.xpath("//h1")) == 1
    assert page.findtext(".//title").startswith(page.findtext(".//h1"))
    assert not page.xpath("//script | //style | //*[@style]")
    assert len(page.xpath("//form")) == len(page.xpath("//form[.//button]"))
    for control in page.xpath("//select | //input[not(@type='hidden')]"):
        assert control.get("aria-label") or page.xpath(f"//label[@for='{control.get('id')}']"), control.get("name")
    for table in page.iter("table"):
        assert table.findtext("caption")
        assert {len(row) for row in table.iter("tr")} == {len(table.xpath("./thead/tr/th[@scope='col']"))}
    for path in page.xpath("//a/@href | //form/@action | //link[@rel='stylesheet']/@href"):
        assert path.startswith("/")
    assert len({(name_of(link), link.get("href")) for link in page.iter("a")}) == len({name_of(link) for link in page.iter("a")})
    buttons = [name_of(button) for button in page.iter("button")]
    assert len(buttons) == len(set(buttons))
    options = sum(len(page.xpath(f"//{tag}")) for tag in ("a", "button", "option")) + len(page.xpath("//input[not(@type='hidden')]"))
    assert (len(list(page.iter())) <= 150, options <= 45) == (True, True)
    return page


def terms(page: Any) -> dict[str, str]:
    return {dt.text_content(): dt.getnext().text_content() for dt in page.iter("dt")}


def table(page: Any, caption: str) -> list[list[str]]:
    (found,) = page.xpath(f"//table[caption='{caption}']")
    return [[" ".join(cell.text_content().split()) for cell in row] for row in found.xpath("./tbody/tr")]


def alerts(page: Any) -> list[str]:
    return [str(text) for text in page.xpath("//*[@role='alert']/text()")]


def said(page: Any) -> list[str]:
    return [str(text) for text in page.xpath("//*[@role='status']/text()")]


def delivered(desk: Desk) -> tuple[dict[str, Any], dict[str, Any]]:
    """A delivered order and an item in it."""
    order = desk.one("SELECT * FROM orders WHERE status = 'delivered'")
    items = (
        "SELECT items.*, product_id, products.name AS product FROM items JOIN variants USING (variant_id) JOIN products USING (product_id)"
    )
    return order, desk.one(f"{items} WHERE order_id = ?", order["order_id"])
