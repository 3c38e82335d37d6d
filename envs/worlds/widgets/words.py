"""Words from which the gallery's tasks are drawn."""

__all__ = ["NAMES", "NOTES", "PLACES", "PLANTS", "REASONS", "TOPICS"]

NAMES = (
    "Ana Castro", "Ben Okafor", "Chloe Marsh", "Dev Patel", "Elif Demir", "Femi Bello", "Greta Lund", "Hugo Martin", "Ines Duarte",
    "Jonas Weber", "Kira Novak", "Liam Byrne", "Mina Sato", "Nils Berg", "Olga Petrova", "Pablo Reyes", "Quinn Hart", "Rosa Conti",
)  # fmt: skip
PLANTS = (
    "Alder", "Beech", "Cedar", "Elm", "Fern", "Hazel", "Ivy", "Juniper", "Larch", "Maple", "Oak", "Poplar", "Rowan", "Spruce", "Willow",
)  # fmt: skip
PLACES = {
    "Austria": ("Graz", "Linz", "Vienna"),
    "Canada": ("Calgary", "Halifax", "Ottawa"),
    "Ghana": ("Accra", "Kumasi", "Tamale"),
    "Japan": ("Kyoto", "Nagoya", "Osaka"),
    "Peru": ("Arequipa", "Cusco", "Lima"),
    "Spain": ("Bilbao", "Malaga", "Seville"),
}
NOTES = (
    "Leave it at the door", "Ring twice", "Meet at noon", "Back on Monday", "Call before you come", "Handle with care", "Gift, no bill",
    "Ask for the key", "Second floor, left", "Water the plants",
)  # fmt: skip
REASONS = ("out of date", "kept elsewhere", "no longer needed", "made by mistake", "replaced by another")
TOPICS = ("budget", "inventory", "payroll", "rota", "survey", "travel", "visitors", "orders")
