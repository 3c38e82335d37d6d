"""The words of the workspace world: names, teams, places, subjects, texts. All that is generated is put together from these."""

__all__ = [
    "ANSWERS",
    "CITIES",
    "COMPANIES",
    "FAMILY_NAMES",
    "FOLDERS",
    "GIVEN_NAMES",
    "MAIL_FOLDERS",
    "MEETINGS",
    "ROOMS",
    "TEAMS",
    "TEMPLATES",
    "TOPICS",
    "ZONES",
]

GIVEN_NAMES = (
    "Amélie", "Bo", "Çelik", "Dorothea", "Émile", "Freya", "Göran", "Hana", "Ìfé", "Jürgen", "Kwame", "Lærke", "Mónica", "Niamh",
    "Olga", "Pénélope", "Ravi", "Štěpán", "Thandi", "Umberto", "Vigdís", "Wiebke", "Yusuf", "Zélie",
)  # fmt: skip
FAMILY_NAMES = (
    "Achterberg", "Bøgh", "Carneiro", "D'Souza", "Ekström", "Färber", "Groß", "Hölzl", "Iyer", "Jiménez", "Kowalski", "L'Estrange",
    "Mbeki", "Nakamura", "O'Neill", "Pereira", "Quiñones", "Rasmussen", "Sato-Lund", "Tremblay", "Ueda", "Välimäki", "Warsame", "Zanetti",
)  # fmt: skip
TEAMS = ("Finance", "Legal", "Sales", "Design", "Support", "Research")
ZONES = {"London": "Europe/London", "Berlin": "Europe/Berlin", "Boston": "America/New_York", "Pune": "Asia/Kolkata"}
"""The office's cities, and the time zone of each."""
COMPANIES = ("Brightwater", "Cobaltworks", "Dunefield", "Emberline", "Fernhill", "Glasshouse")
CITIES = ("Aarhus", "Bilbao", "Coimbra", "Dresden", "Esbjerg", "Fribourg", "Galway", "Haarlem")
ROOMS = (("Aspen", 4), ("Birch", 6), ("Cedar", 8), ("Damson", 12), ("Elder", 20))
FOLDERS = ("Plans", "Reports", "Contracts")
MAIL_FOLDERS = ("inbox", "archive", "spam")

TOPICS = (
    "annual budget", "brand guide", "client survey", "data retention", "energy audit", "fire drill", "grant report", "hiring plan",
    "intern scheme", "joint venture", "kitchen refit", "lease renewal", "market study", "night shifts", "office move", "price list",
    "quality review", "risk register", "server upgrade", "travel rules",
)  # fmt: skip
"""What mails and documents are about."""
MEETINGS = (
    "budget round", "client call", "design critique", "hiring panel", "launch plan", "mentor hour", "metrics review", "planning poker",
    "release check", "retro", "stand-up", "supplier talk", "team lunch", "town hall", "training", "works council",
)  # fmt: skip
TEMPLATES = {
    "thanks": "Thank you, I have got it.",
    "agree": "That is fine with me, please go ahead.",
    "decline": "I am afraid that this will not work for me.",
}
"""What a reply says, by template."""
ANSWERS = ("accepted", "declined")
