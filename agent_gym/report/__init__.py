"""Reports for people: one HTML kit, and the pages made with it."""

from agent_gym.report.charts import Point, Series
from agent_gym.report.demo_report import DemoReport, write_demo_report
from agent_gym.report.episodes import EpisodeView, StepView, episode_view

__all__ = ["DemoReport", "EpisodeView", "Point", "Series", "StepView", "episode_view", "write_demo_report"]
