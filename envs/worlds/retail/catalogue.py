"""The words of the retail world: names, places, products. All that is generated is put together from these."""

__all__ = [
    "CATEGORIES",
    "CITIES",
    "COLOURS",
    "DOMAINS",
    "FAMILY_NAMES",
    "GIVEN_NAMES",
    "MESSAGES",
    "METHODS",
    "PRODUCTS",
    "REASONS",
    "STREETS",
    "STYLES",
    "VOUCHERS",
    "reason_code",
]

GIVEN_NAMES = (
    "Ana", "Björn", "Chloé", "Dario", "Élise", "Fatima", "Grace", "Håkon", "Imani", "José", "Kenji", "Lucía", "Maeve", "Noor",
    "Óscar", "Priya", "Quentin", "Rosa", "Søren", "Tariq", "Ulla", "Victor", "Wanda", "Zoë",
)  # fmt: skip
FAMILY_NAMES = (
    "Abbott", "Bianchi", "Castro", "D'Angelo", "Eriksen", "Fontaine", "Grünwald", "Hughes", "Ivanova", "Jansen", "Keller", "Lindqvist",
    "Moreau", "Núñez", "O'Brien", "Patel", "Quispe", "Rossi", "Sørensen", "Tanaka", "Usman", "Vance", "Weiß", "Yilmaz",
)  # fmt: skip
DOMAINS = ("inboxly", "northmail", "postbird", "quickbox", "letterhub", "windpost")
CITIES = (
    "Boise", "Bristol", "Cádiz", "Denver", "Dublin", "Fresno", "Ghent", "Hamburg", "Köln", "Leeds", "Lyon", "Malmö", "Nairobi",
    "Osaka", "Porto", "Quito", "Reno", "Sofia", "Tampa", "Turin", "Utrecht", "Vilnius", "Warsaw", "Zürich",
)  # fmt: skip
STREETS = (
    "Alderway", "Birchgate", "Cedarholm", "Damside", "Elmrow", "Ferncourt", "Graniteway", "Hollyfield", "Ironbridge", "Juniperlea",
    "Kilnyard", "Larkspur", "Millrace", "Northgate", "Orchardside", "Pinecrest", "Quarryhill", "Riverbank", "Stonehill", "Thornfield",
)  # fmt: skip
COLOURS = ("black", "blue", "green", "grey", "red", "white", "yellow")
CATEGORIES = {
    "clothing": ("rain jacket", "wool sweater", "sun hat", "running shoes"),
    "home": ("desk lamp", "floor lamp", "wall clock", "door mat"),
    "kitchen": ("water kettle", "coffee press", "soup pot", "bread box"),
    "outdoor": ("water bottle", "camping chair", "rain tent", "travel mug"),
}
STYLES = {
    "clothing": ("small", "medium", "large"),
    "home": ("matt", "glossy", "brushed"),
    "kitchen": ("compact", "standard", "family"),
    "outdoor": ("steel", "bamboo", "canvas"),
}
PRODUCTS = tuple(name for names in CATEGORIES.values() for name in names)

VOUCHERS = ("EMBER-10", "TRAIL-25", "FROST-15", "MAPLE-40", "CREEK-05", "AMBER-30")
METHODS = ("visa", "mastercard", "paypal", "maestro", "amex")
MESSAGES = (
    "", "", "", "Leave it with the neighbours.", "It's a gift, please no bill in the box.", "Ring twice: the bell's loose.",
    "Café below, entrance in the yard (2ème cour).", "Mind the dog!",
)  # fmt: skip
"""What people write to the carrier."""

REASONS = {
    "ordered_by_mistake": ("I ordered it by mistake", "it was ordered by mistake"),
    "found_cheaper": ("I found it cheaper elsewhere", "the same thing is cheaper, I found it at another shop"),
    "no_longer_needed": ("it is no longer needed", "I have no need for it, it is needed no longer"),
}
"""What people say, by the reason code under which an order is cancelled."""


def reason_code(phrase: str) -> str:
    """The code for what somebody said."""
    return next(code for code, phrases in REASONS.items() if phrase in phrases)
