"""Roles, names, states: what the specifications' own examples ask for, one case each. The element in question has the id ``x``."""

import pytest
from lxml import etree

from agent_gym.browser.accessibility import actions_of, attributes_of, hidden, role_of, states_of, value_shown
from agent_gym.browser.live import Live, Node, is_disabled
from agent_gym.browser.names import Names
from agent_gym.browser.snapshot import STATES
from tests.browser.toy_site import Site


def body_of(markup: str) -> Node:
    parser = etree.HTMLParser(remove_comments=True, remove_pis=True)
    body = etree.HTML(f"<!doctype html><html><head><title>t</title></head><body>{markup}</body></html>", parser=parser).find("body")
    assert body is not None
    return body


def find(body: Node, identity: str = "x") -> Node:
    return next(node for node in body.iter() if node.get("id") == identity)


def told(markup: str, live: Live | None = None) -> tuple[str, str]:
    body = body_of(markup)
    node = find(body)
    attributes = attributes_of(node)
    role = role_of(node, node.tag, attributes)
    return role, Names(body, live or Live()).of(node, node.tag, role, attributes)


ROLES = [
    ('<a id=x href="/">a</a>', "link"),
    ("<a id=x>a</a>", "generic"),
    ("<button id=x>a</button>", "button"),
    ("<input id=x>", "textbox"),
    ("<input id=x type=nonsense>", "textbox"),
    ("<input id=x type=EMAIL>", "textbox"),
    ("<input id=x type=search>", "searchbox"),
    ("<input id=x type=tel list=l>", "combobox"),
    ("<input id=x type=number list=l>", "spinbutton"),
    ("<input id=x type=range>", "slider"),
    ("<input id=x type=checkbox>", "checkbox"),
    ("<input id=x type=radio>", "radio"),
    ("<input id=x type=image>", "button"),
    ("<input id=x type=file>", "button"),
    ("<input id=x type=date>", "textbox"),
    ("<textarea id=x></textarea>", "textbox"),
    ("<select id=x></select>", "combobox"),
    ("<select id=x size=1></select>", "combobox"),
    ("<select id=x size=4></select>", "listbox"),
    ("<select id=x multiple></select>", "listbox"),
    ("<select><option id=x>a</select>", "option"),
    ("<select><optgroup id=x label=a></optgroup></select>", "group"),
    ("<h4 id=x>a</h4>", "heading"),
    ("<ol><li id=x>a</ol>", "listitem"),
    ("<menu id=x></menu>", "list"),
    ("<table id=x></table>", "table"),
    ("<table><tr id=x><td>a</table>", "row"),
    ("<table><tr><td id=x>a</table>", "cell"),
    ("<table><tr><th id=x>a<th>b</table>", "columnheader"),
    ("<table><tr><th id=x>a<td>b</table>", "rowheader"),
    ("<table><tr><th id=x scope=row>a<th>b</table>", "rowheader"),
    ("<table><tr><th id=x scope=col>a<td>b</table>", "columnheader"),
    ("<nav id=x></nav>", "navigation"),
    ("<header id=x></header>", "banner"),
    ("<section><footer id=x></footer></section>", "generic"),
    ("<article><div><header id=x></header></div></article>", "generic"),
    ("<section id=x></section>", "generic"),
    ("<section id=x aria-label=a></section>", "region"),
    ("<form id=x></form>", "generic"),
    ("<form id=x title=a></form>", "form"),
    ("<aside id=x></aside>", "complementary"),
    ("<details id=x></details>", "group"),
    ("<details><summary id=x>a</summary></details>", "button"),
    ("<details><summary>a</summary><summary id=x>b</summary></details>", "generic"),
    ("<fieldset id=x></fieldset>", "group"),
    ("<output id=x></output>", "status"),
    ("<progress id=x></progress>", "progressbar"),
    ("<hr id=x>", "separator"),
    ("<img id=x src=a>", "img"),
    ('<img id=x src=a alt="">', "presentation"),
    ("<dl><dt id=x>a</dl>", "term"),
    ("<dl id=x></dl>", "generic"),
    ("<div id=x contenteditable></div>", "textbox"),
    ("<div id=x contenteditable=false></div>", "generic"),
    # explicit roles
    ("<div id=x role=tab></div>", "tab"),
    ('<div id=x role="nonsense Button">a</div>', "button"),
    ('<h2 id=x role="">a</h2>', "heading"),
    ("<ul id=x role=none></ul>", "presentation"),
    ('<a id=x role=presentation href="/">a</a>', "link"),
    ("<div id=x role=region></div>", "generic"),
    ("<div id=x role=region aria-label=a></div>", "region"),
]

NAMES = [
    # where a name comes from, in order
    ("<i id=a>one</i> <i id=b>two</i><button id=x aria-labelledby='b a' aria-label=no>no</button>", "two one"),
    ("<button id=x aria-labelledby=missing aria-label=yes>no</button>", "yes"),
    ("<button id=x aria-label=' '>yes</button>", "yes"),
    ("<button id=x title=no>yes</button>", "yes"),
    ("<button id=x title=yes></button>", "yes"),
    ("<input id=x placeholder=no title=yes>", "yes"),
    ("<input id=x placeholder=yes>", "yes"),
    # references
    ("<span id=a hidden>not <b hidden>seen</b></span><input id=x aria-labelledby=a>", "not seen"),
    ("<span id=a>seen <b hidden>not</b></span><input id=x aria-labelledby=a>", "seen"),
    ("<span role=button id=x aria-label=Delete aria-labelledby='x f'></span><a id=f href=/>file.pdf</a>", "Delete file.pdf"),
    ("<span id=x role=button aria-labelledby=a>no</span><span id=a aria-labelledby=x>yes</span>", "yes"),
    ("<span id=a>the <i aria-labelledby=b>no</i></span><i id=b>no</i><input id=x aria-labelledby=a>", "the no"),
    ("<button id=x><i aria-labelledby=b>no</i></button><i id=b>yes</i>", "yes"),
    ("<input id=a value=5><input id=x aria-labelledby=a>", "5"),
    ("<input id=a type=password value=secret><input id=x aria-labelledby=a>", "••••••"),
    ("<div id=a><script>no()</script>yes</div><input id=x aria-labelledby=a>", "yes"),
    # labels
    ("<label for=x>Street</label><input id=x>", "Street"),
    ("<label>City <input id=x></label>", "City"),
    ("<label>City <select id=x><option>Rome<option>Oslo</select></label>", "City"),
    ("<label for=y>no <input id=x title=yes></label>", "yes"),
    ("<label for=x>one</label><label>two <input id=x></label>", "one two"),
    ("<label><input id=x type=checkbox> Flash the screen <input value=3> times</label>", "Flash the screen 3 times"),
    ("<label for=x>foo<input value=David></label><input id=x>", "foo David"),
    ("<label><input id=x type=checkbox>In <select><option>days<option selected>weeks</select></label>", "In weeks"),
    ("<label><input id=x type=checkbox>At <input type=range value=3></label>", "At 3"),
    ("<label for=x>At <b role=slider aria-valuenow=3 aria-valuetext=three>|</b></label><input id=x>", "At three"),
    ("<label for=x>In <b role=textbox>blue</b></label><input id=x>", "In blue"),
    ("<label for=x>a <i hidden>no</i> b</label><input id=x>", "a b"),
    ("<label for=x>I accept the <a href=/>terms</a></label><input id=x type=checkbox>", "I accept the terms"),
    ("<label>Done <progress id=x></progress></label>", "Done"),
    ("<label><input type=hidden><input id=x>yes</label>", "yes"),
    # HTML's own sources
    ("<input id=x type=submit>", "Submit"),
    ("<input id=x type=reset>", "Reset"),
    ("<input id=x type=submit value='Pay now'>", "Pay now"),
    ("<input id=x type=button title=yes>", "yes"),
    ("<input id=x type=image alt=Go title=no>", "Go"),
    ("<input id=x type=image title=yes>", "yes"),
    ("<input id=x type=image>", "Submit Query"),
    ("<img id=x alt='A lamp' title=no>", "A lamp"),
    ("<img id=x title=yes>", "yes"),
    ("<fieldset id=x><legend>Pay <b>by</b></legend>no</fieldset>", "Pay by"),
    ("<fieldset id=x title=yes><legend></legend></fieldset>", "yes"),
    ("<table id=x title=no><caption>Orders</caption><tr><td>no</table>", "Orders"),
    ("<figure id=x><img alt=no><figcaption>Fig. 1</figcaption></figure>", "Fig. 1"),
    ("<select><optgroup id=x label=yes></optgroup></select>", "yes"),
    ("<select><option id=x label=yes>no</select>", "yes"),
    # content
    ("<a id=x href=/>\n  see\t<b>all</b>\xa0of it </a>", "see all of it"),
    ("<a id=x href=/><b>un</b><i>done</i></a>", "undone"),
    ("<a id=x href=/><h3>Lamp</h3><p>$5</p></a>", "Lamp $5"),
    ("<a id=x href=/>one<br>two</a>", "one two"),
    ("<a id=x href=/><img alt=Home></a>", "Home"),
    ("<button id=x>Add <span aria-hidden=true>+</span><span style='display: none'>no</span></button>", "Add"),
    ("<button id=x><svg><title>Close</title><path/></svg></button>", "Close"),
    ("<button id=x><i title=Close></i></button>", "Close"),
    ("<button id=x><b aria-label=Close>no</b> it</button>", "Close it"),
    ("<div id=x role=button>a <input value=b> c</div>", "a b c"),
    ("<table><tr id=x><td>a<td>b</table>", "a b"),
    ("<h1 id=x>Order <em>5</em></h1>", "Order 5"),
    ("<details><summary id=x>More <b>of</b> it</summary>no</details>", "More of it"),
    ("<button id=x><details><summary>yes</summary>no</details></button>", "yes"),
    ("<div id=x tabindex=0>no</div>", ""),
    ("<nav id=x>no</nav>", ""),
    ("<ul id=x aria-label=yes><li>no</ul>", "yes"),
]


@pytest.mark.parametrize(("markup", "role"), ROLES)
def test_role(markup: str, role: str) -> None:
    assert told(markup)[0] == role


@pytest.mark.parametrize(("markup", "name"), NAMES)
def test_name(markup: str, name: str) -> None:
    assert told(markup)[1] == name


def test_names_that_refer_to_each_other_end() -> None:
    parts = "".join(f"<p role=textbox id=d{n}>{f'<b aria-labelledby=d{n + 1}></b>' * 2}</p>" for n in range(40))
    page = Site(a=f"{parts}<p role=textbox id=d40>x</p><button aria-labelledby=d0>b</button>").open("/a")
    assert page.snapshot().elements[-1].name == "b"
    page = Site(a="<button aria-labelledby=x>b</button><div id=x role=textbox><span aria-labelledby=x>q</span></div>").open("/a")
    assert page.snapshot().elements[0].name == "q"


def test_a_name_takes_what_was_typed_into_a_field_in_it() -> None:
    body = body_of("<label><input id=x type=checkbox> In <input id=n value=3> days</label>")
    live = Live(values={find(body, "n"): "30"})
    assert Names(body, live).of(find(body), "input", "checkbox", attributes_of(find(body))) == "In 30 days"


STATE_CASES = [
    ("<input id=x type=checkbox checked>", ("checked",)),
    ("<input id=x type=checkbox aria-checked=true>", ()),
    ("<div id=x role=checkbox aria-checked=true>", ("checked",)),
    ("<div id=x role=checkbox aria-checked=mixed>", ()),
    ("<input id=x required readonly disabled>", ("disabled", "readonly", "required")),
    ("<button id=x required>", ()),
    ("<fieldset disabled><input id=x></fieldset>", ("disabled",)),
    ("<fieldset disabled><legend><input id=x></legend></fieldset>", ()),
    ("<button id=x aria-disabled=true aria-pressed=true aria-busy=true>", ("busy", "disabled", "pressed")),
    ("<button id=x aria-expanded=false>", ("collapsed",)),
    ("<button id=x aria-expanded=true>", ("expanded",)),
    ("<details><summary id=x>a</summary></details>", ("collapsed",)),
    ("<details open><summary id=x>a</summary></details>", ("expanded",)),
    ("<a id=x href=/ aria-current=page>", ("current",)),
    ("<a id=x href=/ aria-current=false>", ()),
    ("<input id=x aria-invalid=grammar aria-required=true>", ("invalid", "required")),
    ("<select id=x multiple required>", ("multiselectable", "required")),
    ("<div id=x role=tab aria-selected=true>", ("selected",)),
]


@pytest.mark.parametrize(("markup", "states"), STATE_CASES)
def test_states(markup: str, states: tuple[str, ...]) -> None:
    node = find(body_of(markup))
    found = states_of(node, node.tag, attributes_of(node), Live(), is_disabled(node))
    assert found == states
    assert found == tuple(state for state in STATES if state in found)


def test_live_states_come_before_the_markup() -> None:
    node = find(body_of("<input id=x type=checkbox checked>"))
    live = Live(checks={node: False}, focus=node, invalid=(node, "Tick this box."))
    assert states_of(node, "input", attributes_of(node), live, False) == ("focused", "invalid")
    summary = find(body_of("<details open><summary id=x>a</summary></details>"))
    details = summary.getparent()
    assert details is not None
    assert states_of(summary, "summary", {}, Live(opened={details: False}), False) == ("collapsed",)


@pytest.mark.parametrize(
    ("markup", "value", "actions"),
    [
        ("<input id=x value=a>", "a", ("fill",)),
        ("<input id=x value=a readonly>", "a", ()),
        ("<input id=x value=a disabled>", "a", ()),
        ("<input id=x type=password value=abc>", "•••", ("fill",)),
        ("<input id=x type=checkbox value=a>", "", ("check",)),
        ("<input id=x type=radio>", "", ("check",)),
        ("<input id=x type=submit value=Go>", "", ("click",)),
        ("<input id=x type=file>", "", ("upload_file",)),
        ("<input id=x type=date value=2024-05-01>", "2024-05-01", ("fill",)),
        ("<textarea id=x>\na\n b</textarea>", "a\n b", ("fill",)),
        ("<select id=x><option>a<option selected>b</select>", "b", ("select_option",)),
        ("<select id=x multiple><option selected>a<option selected label=c>b</select>", "a, c", ("select_option",)),
        ("<div id=x contenteditable>a <b>b</b></div>", "a b", ("fill",)),
        ("<a id=x href=/>a</a>", "", ("click",)),
        ("<button id=x>a</button>", "", ("click",)),
        ("<button id=x aria-disabled=true>a</button>", "", ()),
    ],
)
def test_value_and_actions(markup: str, value: str, actions: tuple[str, ...]) -> None:
    node, live = find(body_of(markup)), Live()
    attributes = attributes_of(node)
    assert value_shown(node, node.tag, attributes, live) == value
    assert actions_of(node.tag, attributes, states_of(node, node.tag, attributes, live, is_disabled(node))) == actions


def test_chosen_files_are_a_value() -> None:
    node = find(body_of("<input id=x type=file multiple>"))
    assert value_shown(node, "input", attributes_of(node), Live(values={node: "a.txt\nb.txt"})) == "a.txt, b.txt"


@pytest.mark.parametrize(
    ("markup", "unseen"),
    [
        ("<p id=x>a</p>", False),
        ("<p id=x hidden>a</p>", True),
        ("<div hidden><p><b id=x>a</b></p></div>", True),
        ("<div aria-hidden=true><b id=x>a</b></div>", True),
        ("<div aria-hidden=false><b id=x>a</b></div>", False),
        ("<input id=x type=HIDDEN>", True),
        ("<p id=x style='color: red; Display : NONE'>a</p>", True),
        ("<div style='visibility:hidden'><b id=x>a</b></div>", True),
        ("<p id=x style='backface-visibility:hidden; -x-display:none'>a</p>", False),
        ("<details><summary id=x>a</summary>b</details>", False),
        ("<details><summary><b id=x>a</b></summary>b</details>", False),
        ("<details><summary>a</summary><p id=x>b</p></details>", True),
        ("<details><summary>a</summary><summary id=x>b</summary></details>", True),
        ("<details open><summary>a</summary><p id=x>b</p></details>", False),
        ("<details><summary>a</summary><details open><summary id=x>a</summary></details></details>", True),
        ("<template><p id=x>a</p></template>", True),
        ("<datalist><option id=x>a</datalist>", True),
        ("<dialog><p id=x>a</p></dialog>", True),
        ("<dialog open><p id=x>a</p></dialog>", False),
        ("<div popover id=x>a</div>", True),
        ("<div inert><b id=x>a</b></div>", True),
        ("<script id=x>a</script>", True),
    ],
)
def test_hidden(markup: str, unseen: bool) -> None:
    assert hidden(find(body_of(markup)), Live()) is unseen


def test_details_that_were_opened_show_what_is_in_them() -> None:
    node = find(body_of("<details><summary>a</summary><p id=x>b</p></details>"))
    details = node.getparent()
    assert details is not None
    assert not hidden(node, Live(opened={details: True}))
