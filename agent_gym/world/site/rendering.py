"""Records and forms as HTML. Everything that comes from a record is escaped; what it says can be read back (`reading`)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup, escape

from agent_gym.world.site.acts import Act, entity_of, is_free, typed
from agent_gym.world.site.plan import Place, Plan
from agent_gym.world.site.values import Schema, collapsed, part, rows_of, told, types_of

__all__ = ["Control", "Form", "choices_of", "finder_of", "flash_of", "form_of", "record_of"]

Record = Mapping[str, Any]
_LONGEST_LINK = 200
_ONE_LINE = 200
"""Characters up to which a text is typed on one line."""
_LABEL, _SHORT = 90, 40
"""Characters of an option's label, and of what may stand in it."""
_AS_IT_IS = {str: {"type": "string"}, int: {"type": "integer"}}
_INPUTS = {"date": "date", "time": "time"}


class Control(NamedTuple):
    """One field of a form.

    Attributes:
        name: Its name.
        label: Its label.
        kind: ``select``, ``textarea``, or an input's type.
        required: Whether it must be filled.
        options: Of a select, value and label of each.
        value: What it holds.
        limits: Attributes that bound it.
        several: Whether several options can be selected.
    """

    name: str
    label: str
    kind: str
    required: bool
    options: tuple[tuple[str, str], ...] = ()
    value: str = ""
    limits: Mapping[str, Any] = {}
    several: bool = False


class Form(NamedTuple):
    """A form.

    Attributes:
        act: What it does.
        action: Where it is sent.
        method: ``get`` or ``post``.
        controls: Its fields.
        hidden: What it sends beside them.
        about: What it is about that is not to be filled in, in words.
    """

    act: Act
    action: str
    method: str
    controls: tuple[Control, ...]
    hidden: Mapping[str, str]
    about: str = ""


def record_of(plan: Plan, place: Place, record: Record, around: Sequence[Record]) -> Markup:
    """The result that a page shows.

    Args:
        plan: The site.
        place: The page.
        record: The result.
        around: What else is known where a link leads away: the page's arguments, and what its address says beside.
    """
    return Markup("".join(_record(plan, place, place.act.result, record, [record, *around], 2)))


def flash_of(plan: Plan, act: Act, result: Record) -> Markup:
    """The result of what was done."""
    return Markup("".join(_record(plan, None, act.result, result, [result], 3)))


def _record(
    plan: Plan, place: Place | None, known: Mapping[str, Schema], record: Record, around: Sequence[Record], level: int
) -> Iterator[str]:
    shown, lists = [], []
    for name, schema in known.items():
        if name in record:
            rows = rows_of(schema)
            if rows and record[name]:
                lists.append((name, rows))
            else:
                shown.append((name, schema))
    if shown:
        yield "<dl>"
        for name, schema in shown:
            yield f"<dt>{escape(plan.label(name))}</dt><dd>{_value(plan, place, record[name], schema, name, around)}</dd>"
        yield "</dl>"
    for name, rows in lists:
        yield from (_cards if place is not None and name in place.page.cards else _table)(
            plan, place, name, rows, record[name], around, level
        )


def _table(
    plan: Plan,
    place: Place | None,
    name: str,
    known: Mapping[str, Schema],
    rows: Sequence[Record],
    around: Sequence[Record],
    level: int,  # noqa: ARG001
) -> Iterator[str]:
    numbers = {key: ' class="number"' if types_of(schema) & {"integer", "number"} else "" for key, schema in known.items()}
    heads = "".join(f'<th scope="col"{numbers[key]}>{escape(plan.label(key))}</th>' for key in known)
    yield f'<div class="wide"><table><caption>{escape(plan.label(name))}</caption><thead><tr>{heads}</tr></thead><tbody>'
    for row in rows:
        within = [row, *around]
        cells = (
            f"<td{numbers[key]}>{_value(plan, place, row[key], schema, key, within) if key in row else ''}</td>"
            for key, schema in known.items()
        )
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</tbody></table></div>"


def _cards(
    plan: Plan, place: Place | None, name: str, known: Mapping[str, Schema], rows: Sequence[Record], around: Sequence[Record], level: int
) -> Iterator[str]:
    yield f"<section><h{level}>{escape(plan.label(name))}</h{level}>"
    for number, row in enumerate(rows, 1):
        yield f"<article><h{level + 1}>{number}</h{level + 1}>"
        yield from _record(plan, place, known, row, [row, *around], level + 2)
        yield "</article>"
    yield "</section>"


def _value(plan: Plan, place: Place | None, value: Any, schema: Schema, name: str, around: Sequence[Record]) -> str:
    def leaf(field: str, scalar: Any, text: str) -> str:
        html = str(escape(text)).replace(" ¶\n", ' <span class="end">¶</span>\n')
        target = plan.showing.get(field) if isinstance(scalar, str | int) and len(text) <= _LONGEST_LINK else None
        if target is None:
            return html
        things = ({field: scalar}, *around)
        own = {name: next((one[name] for one in things if one.get(name)), None) for name in target.act.required}
        if None in own.values() or (target is place and all(around[-2].get(key) == value for key, value in own.items())):
            return html
        return f'<a href="{escape(plan.address(target, own, around))}">{html}</a>'

    return told(value, schema, name, plan.label, leaf)


def form_of(plan: Plan, act: Act, action: str, known: Record, shown: Record, filled: Mapping[str, str]) -> Form:
    """The form of an operation that writes.

    Args:
        plan: The site.
        act: What it does.
        action: Where it is sent.
        known: What the page's address says: nobody has to fill that in.
        shown: The record that the page shows: what it names can be chosen.
        filled: What its fields hold.
    """
    about = {name: known[name] for name in act.entities if known.get(name)}
    controls = tuple(_control(plan, act, name, schema, shown, filled.get(name)) for name, schema in act.fields.items() if name not in about)
    return Form(act, action, "post", controls, {"do": act.spec.name}, _about(plan, about))


def finder_of(plan: Plan, place: Place, known: Record, shown: Record, filled: Mapping[str, str]) -> Form:
    """The form that leads to a page.

    Args:
        plan: The site.
        place: The page; it has a finder.
        known: What is known where the form stands: it is carried along.
        shown: The record that is shown there: what it names can be chosen.
        filled: What its fields hold.
    """
    act = place.finder
    assert act is not None
    about = {name: known[name] for name in act.entities if known.get(name)}
    controls = [
        _control(plan, act, name, schema, shown, filled.get(name))
        for name, schema in act.fields.items()
        if name not in about and name != "page"
    ]
    for name in plan.carried[place.act.spec.name]:
        if name in plan.keeps:
            continue
        if known.get(name):
            about[name] = known[name]
        elif choices := choices_of(plan, shown, {name}):
            if len(choices) == 1:
                about[name] = choices[0][0]
            else:
                controls.append(Control(name, plan.label(name), "select", False, choices, filled.get(name, "")))
    hidden = {name: str(value) for name, value in about.items()} | {name: str(known[name]) for name in plan.keeps if known.get(name)}
    return Form(act, place.path, "get", tuple(controls), hidden, _about(plan, about))


def _about(plan: Plan, about: Record) -> str:
    return told({name: str(value) for name, value in about.items()}, plan.things, "", plan.label) if about else ""


def _control(plan: Plan, act: Act, name: str, schema: Schema, shown: Record, filled: str | None) -> Control:
    kinds, required, label = types_of(schema), name in act.required, plan.label(name)
    value = filled if filled is not None else typed(schema["default"], name) if "default" in schema else ""
    several = "array" in kinds
    inner = part(schema, "items") if several else schema
    if "boolean" in kinds:
        return Control(name, label, "checkbox", False, value=value)
    if "enum" in inner:
        options = tuple((str(code), plan.option(code)) for code in inner["enum"] if code is not None)
        return Control(name, label, "select", required, options, value, several=several)
    if name not in plan.types and (kind := entity_of(schema)) and (there := choices_of(plan, shown, {kind, name})):
        return Control(name, label, "select", required, there, value, several=several)
    limits = {"maxlength": inner["maxLength"]} if "maxLength" in inner and not several else {}
    if kinds & {"integer", "number"} and "string" not in kinds:
        bounds = {key: schema[bound] for key, bound in (("min", "minimum"), ("max", "maximum")) if bound in schema}
        step = "0.01" if name.endswith("_cents") else "any" if "number" in kinds else "1"
        limits = {"step": step, **{key: typed(bound, name) for key, bound in bounds.items()}}
        return Control(name, label, "number", required, value=value, limits=limits)
    if is_free(schema) and schema.get("maxLength", 0) > _ONE_LINE:
        return Control(name, label, "textarea", required and name not in act.maybe_empty, value=value, limits=limits)
    must = required and name not in act.maybe_empty
    return Control(name, label, _INPUTS.get(schema.get("format", ""), "text"), must, value=value, limits=limits)


def choices_of(plan: Plan, record: Record, names: set[str]) -> tuple[tuple[str, str], ...]:
    """What a record names of a kind, each with what else its row says."""
    found: dict[str, str] = {}
    for row in _rows(record):
        for name in names:
            listed = row.get(name, row.get(f"{name}s"))
            for one in listed if isinstance(listed, list) else [listed]:
                if isinstance(one, str | int) and not isinstance(one, bool) and str(one) not in found:
                    said = collapsed(
                        ", ".join(
                            told(other, _AS_IT_IS[type(other)], key, plan.label)
                            for key, other in row.items()
                            if key != name and _is_short(other)
                        )
                    )
                    found[str(one)] = f"{one} · {said}"[:_LABEL].strip() if said else str(one)
    return tuple(found.items())


def _is_short(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool) and 0 < len(str(value)) <= _SHORT


def _rows(record: Any) -> Iterator[Record]:
    """A record and those in it, those furthest in first."""
    if isinstance(record, dict):
        for value in record.values():
            yield from _rows(value)
        yield record
    elif isinstance(record, list):
        for item in record:
            yield from _rows(item)
