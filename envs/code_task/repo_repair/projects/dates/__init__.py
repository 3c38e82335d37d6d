"""Days, spans of time, and when something happens again."""
