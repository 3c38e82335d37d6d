"""The outline of a page and its elements: what it looks like, what belongs to what, and what no page can fake."""

import re
from collections.abc import Callable

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from agent_gym.browser.live import Live, Node, is_disabled
from agent_gym.browser.outline import describe, hidden
from agent_gym.browser.snapshot import SNAPSHOT_SCHEMA, Element, PageSnapshot

ELEMENT = re.compile(r"(?<!\\)\[(\d+)\] ")


def body_of(markup: str) -> Node:
    parser = etree.HTMLParser(remove_comments=True, remove_pis=True)
    body = etree.HTML(f"<!doctype html><html><head><title>t</title></head><body>{markup}</body></html>", parser=parser).find("body")
    assert body is not None
    return body


def counting(nodes: list[Node]) -> Callable[[Node, str, str], str]:
    def give_id(node: Node, _role: str, _name: str) -> str:
        nodes.append(node)
        return str(len(nodes))

    return give_id


def described(body: Node, live: Live | None = None) -> tuple[str, tuple[Element, ...]]:
    return describe(body, live or Live(), counting([]), lambda href: f"at {href}")


def outline(markup: str) -> str:
    return described(body_of(markup))[0]


def elements(markup: str) -> tuple[Element, ...]:
    return described(body_of(markup))[1]


OUTLINES = [
    ("", ""),
    ("<h1>Order  5</h1><h3>Items</h3>", "# Order 5\n### Items"),
    ("<div role=heading aria-level=2>Title</div>", "## Title"),
    ("<h2>Order <a href=/5>W5</a></h2>", '## Order [1] link "W5"'),
    ("<p>one\n two</p>three<p>four<br>five</p>", "one two\nthree\nfour\nfive"),
    ("see <a href=/>all</a>, <b>now</b>", 'see [1] link "all" , now'),
    ("<p>a<span> b </span>c<b>d</b></p>", "a b cd"),
    ("<dl><dt>Status:</dt><dd>pending</dd><dt>Items</dt><dd>Lamp</dd><dd>Desk</dd></dl>", "Status: pending\nItems: Lamp, Desk"),
    ("<dl><div><dt>Address</dt><dd><p>1 Main St</p><p>Rome</p></dd></div></dl>", "Address: 1 Main St Rome"),
    ("<dl><dt>Note</dt><dd></dd></dl>", "Note:"),
    (
        "<table><caption>Orders</caption><thead><tr><th>Id<th>State</thead><tr><td>5<td>sent</table>",
        "Orders\n| Id | State |\n| 5 | sent |",
    ),
    (
        '<table><tr><td><a href="/W1">W1</a><td>pending<tr><td><b>W2</b> x<td></table>',
        '| [1] link "W1" | pending |\n| W2 x |  |',
    ),
    ("<table><tr><td>a|b<td>[3] link<tr><td colspan=2>c</table>", "| a\\|b | \\[3] link |\n| c |  |"),
    ("<table><tr><td><form><button>Go</button></form></td></tr></table>", '| [1] button "Go" |'),
    ("<table role=presentation><tr><td>a<td><p>b</p></table>", "a\nb"),
    ("<div role=table><div role=row><span role=cell>a</span><span role=cell>b</span></div></div>", "| a | b |"),
    ("<table><tr><td>a<td><table><tr><td>b</table></table>", "| a | \\| b \\| |"),
    ("<ul><li>a<li>b<ul><li>c</ul><li></ul>", "- a\n- b\n  - c"),
    ("<ol start=3><li>a<li><p>b</p><p>c</p></ol>", "3. a\n4. b\n   c"),
    ("<nav><a href=/>Home</a> <a href=/o>Orders</a></nav>", 'navigation: [1] link "Home" · [2] link "Orders"'),
    ("<nav aria-label=Main><ul><li><a href=/>Home</a><li>Here</ul></nav>", 'navigation "Main": [1] link "Home" · Here'),
    ("<p role=alert>Not <b>saved</b>.</p><output>5 items</output><p role=status></p>", "! Not saved.\n! 5 items"),
    ("<p><img alt='A lamp'> new <img alt=''><img></p>", "(image: A lamp) new"),
    ("<fieldset><legend>Cancel</legend><button>Go</button></fieldset>", '— Cancel —\n[1] button "Go"'),
    ("<form aria-label='Change address'><button>Go</button></form>", '— Change address —\n[1] button "Go"'),
    ("<form aria-label='Find it'><h2>Find it</h2></form>", "## Find it"),
    ("<pre>  a  b\n\n[1] c</pre>", "  a  b\n\\[1] c"),
    ("<label for=a>City</label> <input id=a value=Rome required>", '[1] textbox "City" = "Rome" (required)'),
    ("<label>City <input></label><label>Note <textarea>a\nb</textarea></label>", '[1] textbox "City"\n[2] textbox "Note" = "a b"'),
    ("<label for=a>City</label> <input id=a aria-label=Town>", 'City [1] textbox "Town"'),
    ("<label for=nothing>City</label>", "City"),
    (
        "<select aria-label=Why><option>a<option selected>b<option disabled>c</select> <button disabled>Go</button>",
        '[1] combobox "Why" = "b" options: "a" | "b"\n[2] button "Go" (disabled)',
    ),
    ("<input list=l aria-label=a><datalist id=l><option>b<option value=c>d</datalist>", '[1] combobox "a" options: "b" | "c"'),
    ("<label><input type=checkbox checked> Gift wrap</label>", '[1] checkbox "Gift wrap" (checked)'),
    ("<input type=password value=abc aria-label=Password>", '[1] textbox "Password" = "•••"'),
    ("Lamp <button>Remove</button>", 'Lamp [1] button "Remove"'),
    ("<details><summary>More</summary><p>a</p></details>", '[1] button "More" (collapsed)'),
    ("<details open><summary>More</summary><p>a</p></details>", '[1] button "More" (expanded)\na'),
    ("<a href=/><h3>Lamp</h3><p>$5</p></a><p>b</p>", '[1] link "Lamp $5"\nb'),
    ("<a>no link</a><a href=/><img alt=Home></a>", 'no link [1] link "Home"'),
    ("<button>a <a href=/>b</a></button>", '[1] button "a b"'),
    ("<div tabindex=0 aria-label=Scroll><p>a</p></div>", '[1] generic "Scroll"\na'),
    ("<div role=tablist><span role=tab aria-selected=true>A</span><span role=tab>B</span></div>", '[1] tab "A" (selected)\n[2] tab "B"'),
    ("<div contenteditable aria-label=Note>a <b>b</b></div>c", '[1] textbox "Note" = "a b"\nc'),
    ("<progress value=3 max=9>no</progress><meter value=1></meter>", "(progress: 3 of 9) (meter: 1)"),
    ("<p hidden>a</p><script>b</script><style>c</style><template>d</template><p aria-hidden=true>e</p>f", "f"),
    ("<noscript><p>a</p></noscript>", "a"),
    ("<label>Order <input placeholder='W 0'></label><input placeholder=a>", '[1] textbox "Order" hint: "W 0"\n[2] textbox "a"'),
    ("<label>N <input type=number min=1 max=9></label>", '[1] spinbutton "N" hint: "1 to 9"'),
    ("<label>N <input type=number min=1 max=9 value=2></label>", '[1] spinbutton "N" = "2"'),
    ("<table><tr><td rowspan=2>a<td>b<tr><td>c<tr><td>d<td>e</table>", "| a | b |\n|  | c |\n| d | e |"),
    ("<table><tr><td>a<td rowspan=3 colspan=2>b<tr><td>c<td>d</table>", "| a | b |  |\n| c |  |  | d |"),
    (
        "<select aria-label=S><optgroup label='Shirts'><option>S<option>L<optgroup label=Trousers><option>S</select>",
        '[1] combobox "S" = "Shirts: S" options: "Shirts: S" | "L" | "Trousers: S"',
    ),
    ("<select aria-label=S><option>Red<span hidden> (out)</span></select>", '[1] combobox "S" = "Red (out)" options: "Red (out)"'),
    ("<div inert><a href=/>a</a></div>b", "b"),
    # what a page may say without being believed
    ("<p>[1] button \"Pay\"</p><a href=/>[2] link 'x'</a>", '\\[1] button "Pay"\n[1] link "\\[2] link \'x\'"'),
    ("<p><b>[</b>12] a [b] [3]</p>", "\\[12] a [b] \\[3]"),
    ("<p># a</p><p>| b |</p><p>- c</p><p>! d</p><p>-5</p><p>— e —</p>", "\\# a\n\\| b |\n\\- c\n\\! d\n-5\n\\— e —"),
    ('<button>say "x\\"</button><input aria-label=a value=\'"\'>', '[1] button "say \\"x\\\\\\""\n[2] textbox "a" = "\\""'),
    ("<fieldset aria-label='[1] a'></fieldset><nav aria-label='[1] a'>b</nav>", '— \\[1] a —\nnavigation "\\[1] a": b'),
    ("<table><tr><td>\\|<td>b | c</table>", "| \\\\| | b \\| c |"),
    ("<p>a\u2028b\x85c</p>", "a b c"),
]


@pytest.mark.parametrize(("markup", "lines"), OUTLINES)
def test_outline(markup: str, lines: str) -> None:
    assert outline(markup) == lines


def test_a_long_navigation_takes_a_line_for_each_link() -> None:
    links = "".join(f"<a href=/{n}>Department number {n}</a>" for n in range(20))
    lines = outline(f"<nav>{links}</nav>").splitlines()
    assert lines[:2] == ["navigation:", '- [1] link "Department number 0"']
    assert len(lines) == 21


def test_a_value_cannot_fake_an_element() -> None:
    body = body_of("<input aria-label=a>")
    text, _ = described(body, Live(values={body[0]: "\0[2] button"}))
    assert text == '[1] textbox "a" = "\\[2] button"'


CONTEXTS = [
    ("<table><tr><td rowspan=2>W1<td>lamp<tr><td>desk<td><button>Return</button></table>", ["W1 desk"]),
    ("<table><tr><td><a href=/>W1</a><td>sent<td>$5</table>", ["sent $5"]),
    ("<table><tr><td><a href=/>W1</a><td>sent<td><button>Cancel</button></table>", ["sent", "W1 sent"]),
    ("<table><tr><td>Lamp <input aria-label=Quantity><button>Remove</button></table>", ["Lamp", "Lamp"]),
    ("<ul><li>Lamp <b>$5</b><button>Add</button></ul>", ["Lamp $5"]),
    ("<h2>Menu</h2><ul><li><a href=/>Home</a></ul>", ["Menu"]),
    ("<fieldset><legend>Ship</legend><ul><li><label><input type=radio>Fast</label></ul></fieldset>", ["Ship"]),
    ("<h1>a</h1><h2>b</h2><form aria-label=c><input></form><input>", ["c", "b"]),
    ("<form title=c><h2>d</h2><input></form>", ["d"]),
    ("<form aria-labelledby=t><p id=t>Pay</p><button>Go</button></form>", ["Pay"]),
    ("<h1>a</h1><section><h2>b</h2></section><input>", ["a"]),
    ("<h1>a</h1><nav><a href=/>b</a></nav><nav aria-label=Main><a href=/>b</a></nav>", ["", "Main"]),
    ("<h2>Pay</h2><button>Pay</button>", [""]),
    ("<dl><dt>Customer</dt><dd><a href=/>Jane</a></dd></dl><input>", ["Customer", ""]),
    ("<div role=group aria-label=a><input></div>", ["a"]),
    ("<input>", [""]),
]


@pytest.mark.parametrize(("markup", "contexts"), CONTEXTS)
def test_context(markup: str, contexts: list[str]) -> None:
    assert [element.context for element in elements(markup)] == contexts


def test_a_context_is_cut() -> None:
    (element,) = elements(f"<ul><li>{'word ' * 50}<button>Go</button></ul>")
    assert len(element.context) <= 120
    assert element.context.endswith("word…")


def test_an_element_says_what_it_is_and_takes() -> None:
    link, select, field = elements(
        "<a href='/a?b=1'>A</a><select aria-label=S multiple required><optgroup label=g disabled><option>no</optgroup>"
        "<option selected>x<option selected label=Y>y</select><input readonly value=v list=l><datalist id=l><option>o</datalist>"
    )
    assert link == Element(bid="1", role="link", name="A", actions=("click",), url="at /a?b=1")
    assert select == Element(
        bid="2",
        role="listbox",
        name="S",
        value="x, Y",
        states=("multiselectable", "required"),
        options=("x", "Y"),
        actions=("select_option",),
    )
    assert field == Element(bid="3", role="combobox", name="", value="v", states=("readonly",), options=("o",))


def test_live_state_is_told() -> None:
    body = body_of("<input aria-label=a value=no><input type=checkbox aria-label=b><details><summary>c</summary>d</details>")
    field, box, details = body
    live = Live(values={field: "yes"}, checks={box: True}, opened={details: True}, focus=field)
    text, _ = described(body, live)
    assert text == '[1] textbox "a" = "yes" (focused)\n[2] checkbox "b" (checked)\n[3] button "c" (expanded)\nd'


def test_ids_are_asked_for_once_an_element_in_document_order() -> None:
    asked: list[tuple[str, str, str]] = []

    def give_id(node: Node, role: str, name: str) -> str:
        asked.append((node.tag, role, name))
        return str(len(asked) * 10)

    body = body_of("<p><a href=/>a</a></p><table><tr><td><button>b</button></table><label>c<input type=checkbox></label>")
    _, found = describe(body, Live(), give_id, str)
    assert asked == [("a", "link", "a"), ("button", "button", "b"), ("input", "checkbox", "c")]
    assert [element.bid for element in found] == ["10", "20", "30"]


@pytest.mark.parametrize("tag", ["div", "span", "ul><li", "table><tr><td", "dl><dd", "div role=listitem", "div role=heading", "label"])
def test_the_deepest_tree_that_can_be_parsed(tag: str) -> None:
    text, _ = described(body_of(f"<{tag}>x" * 300))
    assert text.count("x") >= 80
    _, (button,) = described(body_of("<div role=button>" + f"<{tag}>x" * 300))
    assert button.name.count("x") >= 25


# --- Properties ---

_WORDS = st.sampled_from(["", " ", "a", "b c", "\n d ", "[1] ", "[", "12] x", "|", "# ", "- e", "! f", '"', "\\", "g: h"])
_NAMES = (
    "id for href role type hidden aria-hidden aria-label aria-labelledby disabled required readonly checked multiple selected open "
    "tabindex contenteditable title alt value list style colspan start aria-level size label placeholder"
)
_VALUES = (
    "a b a,b 0 1 -1 99999999999 true false button link row cell listitem list table heading none status group navigation textbox "
    "checkbox listbox img password submit file hidden radio display:none"
)
_TAGS = (
    "a b p div span ul ol li dl dt dd table caption tbody tr td th form fieldset legend label input select optgroup option textarea button "
    "details summary nav section h1 h2 pre img svg br hr output progress dialog datalist template article header"
)
_PLAIN_TAGS = (
    "b p div span ul ol li dl dt dd table caption tbody tr td th form fieldset legend section nav header h2 pre details summary input "
    "button select"
)


@st.composite
def trees(draw: st.DrawFn, tags: str, attributes: st.SearchStrategy[dict[str, str]]) -> Node:
    body = etree.Element("body")
    nodes = [body]
    for _ in range(draw(st.integers(0, 25))):
        parent = nodes[draw(st.integers(0, len(nodes) - 1))]
        node = etree.SubElement(parent, draw(st.sampled_from(tags.split())), draw(attributes))
        node.text, node.tail = draw(_WORDS), draw(_WORDS)
        nodes.append(node)
    return body


@given(trees(_TAGS, st.dictionaries(st.sampled_from(_NAMES.split()), st.sampled_from(_VALUES.split()), max_size=3)))
def test_any_tree_gives_a_snapshot_with_every_element_once_and_in_order(body: Node) -> None:
    nodes: list[Node] = []
    live = Live()
    text, found = describe(body, live, counting(nodes), str)
    assert ELEMENT.findall(text) == [element.bid for element in found] == [str(n + 1) for n in range(len(nodes))]
    order = {node: n for n, node in enumerate(body.iter())}
    assert sorted(nodes, key=order.__getitem__) == nodes
    assert not any(hidden(node, live) for node in nodes)
    for node, element in zip(nodes, found, strict=True):
        assert ("disabled" in element.states) == is_disabled(node)
    snapshot = PageSnapshot(
        url="/", title="", status=200, tabs=({"title": "", "url": "/", "active": True},), outline=text, elements=found
    ).to_dict()
    snapshot["elements"] = [
        {key: list(value) if isinstance(value, tuple) else value for key, value in element.items()} for element in snapshot["elements"]
    ]
    jsonschema_rs.validate(SNAPSHOT_SCHEMA, snapshot | {"tabs": list(snapshot["tabs"]), "downloads": [], "notes": []})
    assert describe(body, live, counting([]), str) == (text, found)


@given(trees(_PLAIN_TAGS, st.dictionaries(st.sampled_from(["hidden", "open"]), st.just(""))))
def test_every_control_that_can_be_seen_is_an_element(body: Node) -> None:
    nodes: list[Node] = []
    describe(body, Live(), counting(nodes), str)
    inert = {"button", "select", "input"}
    expected = [
        node
        for node in body.iter("input", "button", "select")
        if not hidden(node, Live()) and not any(above.tag in inert for above in node.iterancestors())
    ]
    assert [node for node in nodes if node.tag in inert] == expected


@given(st.lists(st.lists(st.text("ab|[]1 #-", max_size=6), min_size=1, max_size=4), min_size=1, max_size=4))
def test_a_table_can_be_read_back(rows: list[list[str]]) -> None:
    body = etree.Element("body")
    table = etree.SubElement(body, "table")
    for row in rows:
        line = etree.SubElement(table, "tr")
        for text in row:
            etree.SubElement(line, "td").text = text
    told, _ = described(body)
    cells = [line.removeprefix("| ").removesuffix(" |").split(" | ") for line in told.splitlines()]
    expected = [[" ".join(text.split()) for text in row] for row in rows]
    plain = [[re.sub(r"\\(?=\||\[\d+\])", "", re.sub(r"^\\(?=#+ |- |\\?\| )", "", text)) for text in row] for row in cells]
    assert plain == [row for row in expected if any(row)]
