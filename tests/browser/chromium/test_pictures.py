"""What agents see of pages through the array interface, and what pages make and save themselves."""

import warnings

import gymnasium
import numpy as np
import pytest
from stable_baselines3.common.env_checker import check_env

from agent_gym.browser import Blocked
from tests.browser.chromium.conftest import Open
from tests.browser.chromium.test_engine import bid
from tests.browser.toy_site import ORIGIN, Site


@pytest.mark.parametrize("observation", ["image", "both"])
def test_pictures_reach_array_policies(needs_chromium: None, observation: str) -> None:  # noqa: ARG001 - pytest's way to need it
    env = gymnasium.make(
        "agent_gym:AgentBase/WebTask-v0", interface="array", engine="chromium", observation=observation, disable_env_checker=True
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its advice on how to shape an observation
        check_env(env)
    first, _ = env.reset(seed=0)
    image = first["image"]
    assert (image.shape, image.dtype) == ((720, 1280, 3), np.uint8)
    assert len(np.unique(image)) > 50
    again, _ = env.reset(seed=0)
    assert np.array_equal(image, again["image"])
    env.close()


MADE = """<script>
function save(way) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(["hello ", way]));
  link.download = way + ".txt";
  if (way === "event") link.dispatchEvent(new MouseEvent("click"));
  else link.click();
  URL.revokeObjectURL(link.href);
}
</script><button onclick="save('click')">Click</button><button onclick="save('event')">Event</button>
<button onclick="setTimeout(() => save('late'), 200)">Late</button>
<a id=a download="link.txt">Link</a><a id=b download="no.txt" onclick="return false">Prevented</a>
<iframe srcdoc="<button onclick=&quot;parent.save('frame')&quot;>Frame</button>"></iframe>
<button onclick="save(new ArrayBuffer(3e6))">Big</button>
<script>a.href = b.href = URL.createObjectURL(new Blob([new Uint8Array([0, 255, 10])]))</script>"""


def test_what_a_page_makes_and_saves_is_a_download(open_page: Open) -> None:
    page = open_page(Site(a=MADE), "/a")
    for name in ("Click", "Event", "Late", "Link", "Prevented", "Frame"):
        page.click(bid(page, name))
        assert page.snapshot().url == f"{ORIGIN}/a"
    assert page.downloads == {
        "click.txt": b"hello click",
        "event.txt": b"hello event",
        "late.txt": b"hello late",
        "link.txt": b"\0\xff\n",
        "frame.txt": b"hello frame",
    }
    assert page.snapshot().downloads == tuple(page.downloads)
    with pytest.raises(Blocked, match="too large"):
        page.click(bid(page, "Big"))
