// Begins the episode in a page of MiniWoB++. It comes last in the page, so its onload has been set and runs before this.
addEventListener("load", () => {
  core.createDisplay();
  const hidden = document.createElement("style"); // what is told as the goal, and what a score would be told by
  hidden.textContent = `#query, #query *, #query-pretty, #query-pretty *, #reward-reason, #reward-display, #reward-display *, #click-canvas, #sync-task-cover {
    visibility: hidden !important; pointer-events: none;
  }
  #query :empty {visibility: visible !important}`; // a colour that is asked for has no words
  document.head.append(hidden);
  const limit = core.EPISODE_MAX_TIME;
  core.EPISODE_MAX_TIME = 2 ** 31 - 1; // steps are what is limited
  Math.seedrandom(SEED);
  core.setDataMode(MODE);
  core.startEpisodeReal();
  core.EPISODE_MAX_TIME = limit; // what a reward is worth after some time is measured by it
  core.startEpisode = () => {}; // the page stays as it ended
});
