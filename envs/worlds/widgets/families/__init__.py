"""The widgets of the gallery, one file each."""

from agent_gym.envs.worlds.widgets.families import (
    autocomplete,
    confirm_dialog,
    date_picker,
    download,
    drag_to_sort,
    iframe,
    infinite_list,
    modal,
    native_select,
    nested_scroll,
    popup,
    replaced,
    rich_text,
    shadow_root,
    slider,
    toast,
    upload,
)
from agent_gym.envs.worlds.widgets.families.upload import FILES
from agent_gym.envs.worlds.widgets.widget import Widget

__all__ = ["BY_NAME", "FILES"]

_MODULES = (
    autocomplete, confirm_dialog, date_picker, download, drag_to_sort, iframe, infinite_list, modal, native_select, nested_scroll,
    popup, replaced, rich_text, shadow_root, slider, toast, upload,
)  # fmt: skip
BY_NAME: dict[str, Widget] = {module.WIDGET.name: module.WIDGET for module in _MODULES}
"""The widgets by name."""
