"""Pointing, pressing and typing in a tab, with real input. All of it runs on the browser's thread."""

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from agent_gym.browser.chromium.tab import Tab
from agent_gym.browser.page import Blocked, NoSuchElement, PageError

if TYPE_CHECKING:
    from agent_gym.browser.chromium.host import Place

__all__ = ["Button", "Hands"]

Button = Literal["left", "middle", "right"]
_MODIFIERS = {"Alt": 1, "Control": 2, "Meta": 4, "Shift": 8}
"""Keys that change what a click is, by how the protocol counts them; a name may go on with a side."""
_DRAG_STEPS = 6
"""Moves that a drag consists of: what is dragged over wants to see it come."""


class Hands:
    """Pointer and keyboard.

    Args:
        tab: Gives the tab that is shown.
        viewport: Width and height of the window.
        place: Where it is noted what is held down, and what was copied.
    """

    def __init__(self, tab: Callable[[], Tab], viewport: tuple[int, int], place: "Place") -> None:
        self._tab = tab
        self._viewport = viewport
        self._place = place

    async def click(self, number: int, count: int = 1, lenient: bool = False) -> None:
        """Clicks an element where nothing is over it.

        Args:
            number: The script's number of it.
            count: How many clicks; none moves the pointer there only.
            lenient: Whether what has no size is clicked anyway, by script.

        Raises:
            NoSuchElement: It is gone.
            Blocked: It has no size, is outside the window, or something is over it.
        """
        spot = await self._spot(number, lenient)
        if not spot:
            await self._tab().call("press", number)
            return
        at = {"x": spot["x"], "y": spot["y"]}
        sends = [self._mouse("mouseMoved", at)]
        for each in range(1, count + 1):
            sends += [self._mouse("mousePressed", at, clickCount=each), self._mouse("mouseReleased", at, clickCount=each)]
        await asyncio.gather(*sends)

    async def _spot(self, number: int, lenient: bool = False) -> dict[str, float]:
        """Where to point at an element; empty if it has no size or is covered, and that is allowed.

        Raises:
            NoSuchElement: It is gone.
            Blocked: It has no size, is outside the window, or something is over it.
        """
        spot: dict[str, Any] = await self._tab().call("point", number)
        if spot.get("gone"):
            raise NoSuchElement("stale: the element is no longer on the page")
        if "x" in spot:
            return spot
        if lenient:
            return {}
        if over := spot.get("covered"):
            raise Blocked(f"the element is covered by {over}")
        raise Blocked("the element is outside the window" if spot.get("outside") else "the element has no size: it cannot be seen")

    async def _mouse(self, kind: str, at: Mapping[str, float], **more: Any) -> None:
        button = {"button": "left"} if more else {}
        held = sum(bit for name, bit in _MODIFIERS.items() if any(each.startswith(f"key {name}") for each in self._place.pressed))
        await self._tab().session.send("Input.dispatchMouseEvent", {"type": kind, **at, **button, "modifiers": held, **more})

    async def ask(self, function: str, number: int, *arguments: Any) -> None:
        """Calls a function of the script that wants an element.

        Raises:
            NoSuchElement: It is gone.
        """
        if not await self._tab().call(function, number, *arguments):
            raise NoSuchElement("stale: the element is no longer on the page")

    async def type(self, number: int, text: str) -> None:
        """Types a text in place of what a field holds: the last character with its key, so that what waits for keys sees one."""
        await self.ask("focus", number, True)
        keyboard = self._tab().page.keyboard
        if not text:
            await keyboard.press("Backspace")
            return
        if len(text) > 1:
            await keyboard.insert_text(text[:-1])
        if text[-1] == "\n":
            await keyboard.press("Enter")
        else:
            await keyboard.type(text[-1])

    async def press(self, number: int, key: str) -> None:
        """Presses a key with an element focused.

        Raises:
            PageError: There is no such key.
        """
        await self.ask("focus", number, False)
        await self.key(key)

    async def wheel(self, dx: float, dy: float) -> None:
        """Turns the wheel over the middle of the page."""
        if dx or dy:
            width, height = self._viewport
            await self._mouse("mouseWheel", {"x": width / 2, "y": height / 2}, deltaX=dx, deltaY=dy)

    async def wheel_at(self, x: float, y: float, dx: float, dy: float) -> None:
        """Turns the wheel over a point."""
        await self._mouse("mouseWheel", {"x": x, "y": y}, deltaX=dx, deltaY=dy)

    # --- By coordinates and keys alone ---

    async def move(self, x: float, y: float) -> None:
        """Moves the pointer to a point."""
        await self._tab().page.mouse.move(x, y)

    async def hold(self, x: float, y: float, button: Button) -> None:
        """Presses a button at a point, and holds it."""
        await self.move(x, y)
        await self._tab().page.mouse.down(button=button)
        self._place.pressed.add(f"mouse {button}")

    async def release(self, x: float, y: float, button: Button) -> None:
        """Lets a button go at a point."""
        await self.move(x, y)
        await self._tab().page.mouse.up(button=button)
        self._place.pressed.discard(f"mouse {button}")

    async def click_at(self, x: float, y: float, button: Button, count: int) -> None:
        """Clicks at a point."""
        await self._tab().page.mouse.click(x, y, button=button, click_count=count)

    async def drag(self, x: float, y: float, to_x: float, to_y: float) -> None:
        """Drags whatever is at a point to another."""
        mouse = self._tab().page.mouse
        await mouse.move(x, y)
        await mouse.down()
        await mouse.move(to_x, to_y, steps=_DRAG_STEPS)
        await mouse.up()

    async def drag_onto(self, number: int, onto: int) -> None:
        """Drags an element onto another; both must be in the window at once.

        Raises:
            NoSuchElement: One is gone.
            Blocked: One has no size, is outside the window, or something is over it.
        """
        await self._spot(number)
        target = await self._spot(onto)
        source = await self._spot(number)
        await self.drag(source["x"], source["y"], target["x"], target["y"])

    async def key(self, key: str, down: bool | None = None) -> None:
        """Presses a key where the focus is, or only holds it (True) or lets it go (False).

        Raises:
            PageError: There is no such key.
        """
        from playwright.async_api import Error

        keyboard = self._tab().page.keyboard
        if self._place.clipboard:
            await self._tab().call("offer", self._place.clipboard)
        try:
            if down is None:
                await keyboard.press(key)
            elif down:
                await keyboard.down(key)
                self._place.pressed.add(f"key {key}")
            else:
                await keyboard.up(key)
                self._place.pressed.discard(f"key {key}")
        except Error as error:
            if "Unknown key" in error.message:
                raise PageError(f"no key {key!r}") from None
            raise

    async def text(self, text: str, keys: bool) -> None:
        """Types a text where the focus is, with its keys or without."""
        keyboard = self._tab().page.keyboard
        await (keyboard.type(text) if keys else keyboard.insert_text(text))
