"""The rows of a workspace from a seed: about 550, with shared names, near-miss subjects, and calendars in which nobody is in two places."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from agent_gym.envs.worlds.workspace.catalogue import (
    CITIES,
    COMPANIES,
    FAMILY_NAMES,
    FOLDERS,
    GIVEN_NAMES,
    MEETINGS,
    ROOMS,
    TEAMS,
    TOPICS,
    ZONES,
)
from agent_gym.envs.worlds.workspace.clock import DAY, START, shifted, to_utc, wall
from agent_gym.world import Ids, Rows, mailbox

__all__ = ["rows"]

Row = dict[str, Any]
_SPACING = {"never": 0, "weekly": 7, "every two weeks": 14}
"""Days from one occurrence to the next, by what an event's record says."""

_PEOPLE, _TWINS = 10, 2
"""Names of colleagues; so many of them belong to two people."""
_CONTACTS, _TRIPLES = 14, 3
"""Names of contacts; so many of them belong to three people."""
_BUSY = 4
"""So many people have long inboxes."""
_KINDS = ("", " draft", " notes", " update")
"""What tells apart mails and documents on one topic."""
_SERIES, _MEETINGS, _TIMES = 8, 16, 5
"""Series, single meetings, and occurrences of a series."""


def rows(ids: Ids, seed: int) -> Rows:
    """All rows: people, mail, documents, calendar."""
    office = _Office(ids, seed)
    office.hire()
    office.meet_others()
    for number, person in enumerate(office.tables["people"]):
        office.fill_mailbox(person, 13 if number % 3 == 0 and number < 3 * _BUSY else 4)
        office.file_documents(person)
    office.share()
    office.plan()
    return office


class _Office(Rows):
    """The tables while they are filled."""

    def __init__(self, ids: Ids, seed: int) -> None:
        super().__init__(ids, "workspace", seed)
        self._taken: dict[str, list[tuple[int, int]]] = {}
        pairs = zip(self.shuffled(GIVEN_NAMES), self.shuffled(FAMILY_NAMES), strict=True)
        self._names = [f"{given} {family}" for given, family in pairs]

    # --- People ---

    def hire(self) -> None:
        """Adds the people of the office. Who shares a name works in another team and city."""
        teams, cities = self.shuffled(TEAMS), self.shuffled(list(ZONES))
        names = self._names[:_PEOPLE]
        for number, name in enumerate(self.shuffled([*names, *names[:_TWINS]])):
            twin = any(person["person"] == name for person in self.tables["people"])
            opens = self.between(8, 10)
            city = cities[number % len(cities)]
            if twin:
                taken = next(person["city"] for person in self.tables["people"] if person["person"] == name)
                city = self.pick([other for other in cities if other != taken])
            self.add(
                "people",
                person_id=self.id("PE"),
                person=name,
                email=f"{mailbox(name)}{2 if twin else ''}@tallgrass.example",
                team=self._other_team(teams, number, name),
                city=city,
                time_zone=ZONES[city],
                opens=opens,
                closes=opens + 8,
                status="in office",
            )

    def _other_team(self, teams: Sequence[str], number: int, name: str) -> str:
        taken = {person["team"] for person in self.tables["people"] if person["person"] == name}
        return next(team for team in (teams[number % len(teams)], teams[(number + 1) % len(teams)]) if team not in taken)

    def meet_others(self) -> None:
        """Adds the address book. Some contacts share a name, one of them with a colleague."""
        names = self._names[_PEOPLE - 1 : _PEOPLE - 1 + _CONTACTS]
        companies, cities = self.shuffled(COMPANIES), self.shuffled(CITIES)
        for number, name in enumerate([*names, *names[1 : 1 + _TRIPLES] * 2]):
            namesakes = [contact for contact in self.tables["contacts"] if contact["contact"] == name]
            company = next(one for one in companies[number % 3 :] if one not in {contact["company"] for contact in namesakes})
            city = next(one for one in cities[number % 4 :] if one not in {contact["city"] for contact in namesakes})
            self.add(
                "contacts",
                contact_id=self.id("CT"),
                contact=name,
                company=company,
                email=f"{mailbox(name)}@{company.lower()}.example",
                phone=self.phone(),
                city=city,
            )

    def phone(self) -> str:
        """A telephone number."""
        return f"+{self.between(31, 49)} {self.between(100, 999)} {self.between(100_000, 999_999)}"

    # --- Mail ---

    def fill_mailbox(self, person: Row, count: int) -> None:
        """Adds threads of different subjects, some of which differ by a word."""
        topics = self.shuffled(TOPICS)
        subjects = [f"{topic}{kind}" for topic in topics[: (count + 2) // 2] for kind in self.shuffled(_KINDS)[:2]][:count]
        at = START - self.between(1, 6) * 3_600
        for number, subject in enumerate(self.shuffled(subjects)):
            thread_id = self.id("TH")
            self.add(
                "threads",
                thread_id=thread_id,
                person_id=person["person_id"],
                subject=subject,
                folder="inbox" if count > 4 or number < 3 else "archive",
                label=self.pick(("none", "none", "none", "follow up")),
                newest_at=at,
            )
            sender = self._sender(person)
            for back in range(self.between(1, 2), 0, -1):
                text = self.pick(("Here is the {}.", "I have a question about the {}.", "Please look at the {} when you can.")).format(
                    subject
                )
                self.add(
                    "messages",
                    message_id=self.id("MS"),
                    thread_id=thread_id,
                    kind="mail",
                    **sender,
                    sent_at=at - (back - 1) * 5_400,
                    text=text,
                    number=None,
                )
            if self.between(0, 2) == 0:
                for page in range(self.between(1, 2)):
                    file = f"{subject.replace(' ', '-')}-{'ab'[page]}.pdf"
                    self.add("attachments", attachment_id=self.id("AT"), thread_id=thread_id, file=file, text=f"All about the {subject}.")
            at -= self.between(3, 30) * 3_600

    def _sender(self, person: Row) -> Row:
        if self.between(0, 1):
            contact = self.pick(self.tables["contacts"])
            return {"sender": contact["contact"], "address": contact["email"]}
        colleague = self.pick([one for one in self.tables["people"] if one is not person])
        return {"sender": colleague["person"], "address": colleague["email"]}

    # --- Documents ---

    def file_documents(self, person: Row) -> None:
        """Adds a person's folders, and documents of different titles in them, some of which differ by a word."""
        folders = [
            self.add("folders", folder_id=self.id("FO"), person_id=person["person_id"], folder=folder)["folder_id"] for folder in FOLDERS
        ]
        topics = self.shuffled(TOPICS)[:2]
        for title in [f"{topics[0]}{kind}" for kind in self.shuffled(_KINDS)[:2]] + [f"{topics[1]}{self.pick(_KINDS)}"]:
            count = self.between(1, 2)
            document_id = self.id("DO")
            self.add(
                "documents",
                document_id=document_id,
                person_id=person["person_id"],
                folder_id=self.pick(folders),
                title=title,
                **{"class": self.pick(("public", "internal", "internal"))},
                state=self.pick(("draft", "final")),
                link="off",
                version=count,
            )
            for number in range(1, count + 1):
                author = person if number == 1 else self.pick(self.tables["people"])
                self.add(
                    "versions",
                    version_id=self.id("VE"),
                    document_id=document_id,
                    number=number,
                    author=author["person"],
                    saved_at=START - (40 - 9 * number) * DAY - self.between(0, 9) * 3_600,
                    text=f"On the {title}: {self.pick(('the first ideas', 'what was decided', 'figures and dates', 'open points'))}.",
                )

    def share(self) -> None:
        """Shares every other document with a colleague or two, every fourth with a contact."""
        for number, document in enumerate(self.tables["documents"]):
            if number % 2 == 0:
                for colleague in self.shuffled(self.tables["people"])[:2]:
                    if colleague["person_id"] != document["person_id"]:
                        access = self.pick(("reader", "reader", "editor"))
                        self._share(document, access, colleague_id=colleague["person_id"])
            if number % 4 == 1:
                self._share(document, "reader", contact_id=self.pick(self.tables["contacts"])["contact_id"])

    def _share(self, document: Row, access: str, colleague_id: str | None = None, contact_id: str | None = None) -> None:
        share_id, document_id = self.id("SH"), document["document_id"]
        self.add("shares", share_id=share_id, document_id=document_id, colleague_id=colleague_id, contact_id=contact_id, access=access)

    # --- Calendar ---

    def plan(self) -> None:
        """Adds rooms, series that run across the changes of the clocks, and single meetings; nobody and no room is taken twice."""
        for name, seats in ROOMS:
            self.add("rooms", room_id=self.id("RM"), room=name, seats=seats)
        titles = self.shuffled(MEETINGS)
        people = self.tables["people"]
        for number in range(_SERIES + _MEETINGS):
            organiser = people[number % len(people)]
            series = number < _SERIES
            repeats = self.pick(("weekly", "every two weeks")) if series else "never"
            others = [one for one in self.shuffled(people) if one is not organiser][: self.between(1, 2)]
            room = self.pick(self.tables["rooms"]) if self.between(0, 1) else None
            who = [organiser["person_id"], *(one["person_id"] for one in others)]
            keys = [*who, *([room["room_id"]] if room is not None else [])]
            for _ in range(60):
                times = self._times(organiser, _SPACING[repeats], self.between(1, 4 if series else 11))
                if self._free(keys, times):
                    break
            else:
                raise RuntimeError("no time is left for a meeting; the calendars are too full")
            for key in keys:
                self._taken.setdefault(key, []).extend((at, at + 1_800) for at in times)
            self._hold(organiser, others, room, titles[number % len(titles)], repeats, times)

    def _times(self, organiser: Row, spacing: int, day: int) -> list[int]:
        """When it takes place: on a working day, on the hour, within the organiser's hours."""
        zone = organiser["time_zone"]
        while day % 7 in (5, 6):
            day += 1
        hour = self.between(organiser["opens"], organiser["closes"] - 1)
        first = to_utc(f"{wall(START + day * DAY, zone)[:10]} {hour:02d}:00", zone)
        return [shifted(first, zone, timedelta(days=number * spacing)) for number in range(_TIMES if spacing else 1)]

    def _free(self, keys: Sequence[str], times: Sequence[int]) -> bool:
        return not any(start < at + 1_800 and at < end for key in keys for start, end in self._taken.get(key, ()) for at in times)

    def _hold(self, organiser: Row, others: Sequence[Row], room: Row | None, title: str, repeats: str, times: Sequence[int]) -> None:
        event_id = self.id("EV")
        self.add(
            "events",
            event_id=event_id,
            person_id=organiser["person_id"],
            guest_id=None,
            title=title,
            time_zone=organiser["time_zone"],
            starts_at=times[0],
            minutes=30,
            repeats=repeats,
            room_id=None if room is None else room["room_id"],
            state="on",
        )
        for at in times:
            self.add("occurrences", occurrence_id=self.id("OC"), event_id=event_id, starts_at=at, state="on")
        for person in (organiser, *others):
            answer = "accepted" if person is organiser else self.pick(("accepted", "accepted", "invited"))
            self.add("attendees", attendee_id=self.id("AD"), event_id=event_id, person_id=person["person_id"], answer=answer)
