"""An inventory: items, movements, prices, reports."""
