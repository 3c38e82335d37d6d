"""ToolTask: tasks that are solved by calling the operations of a simulated business as tools."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from agent_gym.agent_env import AgentEnv
from agent_gym.core import Session, Snapshot, Task, ToolCall
from agent_gym.envs.worlds import load_worlds
from agent_gym.errors import ConfigurationError
from agent_gym.world import Script, WorldKind, WorldTaskSet, careful_call, next_call

__all__ = ["ToolTask"]


class ToolTask(AgentEnv):
    """Does what people ask of a business, by calling its tools.

    ## Description
    An episode is one request in words, such as *"My e-mail is ana.castro@inboxly.example. Please cancel the order with the desk
    lamp, I ordered it by mistake."* The agent looks up who is asking and what about, keeps to the rules of the business, changes
    what was asked and nothing else, and says that it is done; or it refuses for the right reason. The business is a database in
    memory with a clock of its own; whatever happens in it, happens through the tools.

    ## Observation
    ``text`` says it all in words. ``data`` has ``goal``, ``rules``, ``step``, ``max_steps``, ``last`` (``tool``, ``arguments``,
    ``status`` and ``result`` of the last call, or None) and an empty ``view``; where an answer is wanted also ``asks``, its kind
    (``total_cents``: in cents, or as ``$19.90``). The rules are those of the task's world. Where the interface is perturbed,
    ``conventions`` say how names, dates and numbers are written.

    ## Actions
    | tool (retail) | arguments | |
    |---|---|---|
    | find_user_by_email | email | reads |
    | find_users_by_name | name, page? | reads |
    | get_user | user_id | reads |
    | list_orders, list_orders_after | user_id; user_id, cursor | reads |
    | get_order | order_id | reads |
    | list_products | category, page? | reads |
    | get_product | product_id | reads |
    | search_products | query, category?, max_price_cents?, page? | reads |
    | get_cart | user_id | reads |
    | cancel_order | order_id, reason | changes |
    | change_address | order_id, address_id | changes |
    | exchange_item | order_id, item_id, variant_id | changes |
    | return_item | order_id, item_id | changes |
    | change_payment | order_id, payment_id | changes |
    | add_to_cart, set_cart_quantity | user_id, variant_id, quantity; line_id, quantity | changes |
    | apply_voucher | user_id, voucher | changes; only then the cart's total tells what it is worth |
    | place_order | user_id, address_id, payment_id | changes |
    | close_account | user_id | changes |
    | ask | question | reads: the customer's answer |
    | undo | | changes back the last change |
    | wait | seconds | virtual time passes; offered with ``faults`` or ``retries="agent"`` |
    | finish, refuse, hand_over | answer?; reason; reason | close the episode |

    | tool (workspace) | arguments | |
    |---|---|---|
    | find_person, find_people, get_person | email; name; person_id | reads |
    | find_colleagues, find_contacts | person_id, name | reads |
    | get_contact | contact_id | reads |
    | list_mail, more_mail, search_mail | person_id, and folder; cursor; subject | reads |
    | get_thread, list_attachments | thread_id | reads |
    | search_documents, list_folder | person_id, title; folder_id | reads |
    | get_document, list_shares, list_versions | document_id | reads |
    | list_events | person_id, day | reads |
    | get_event, find_rooms | event_id | reads |
    | find_free_time | person_id, colleague_id, day | reads |
    | ask | question | reads |
    | reply_mail, forward_mail, move_mail | thread_id, and template; contact_id; folder | changes |
    | delete_mail | thread_id | changes |
    | save_attachment | attachment_id, folder_id | changes |
    | share_document, share_outside, unshare | document_id, colleague_id, access; document_id, contact_id; share_id | changes |
    | set_link, rename_document, move_document | document_id, and link; title; folder_id | changes |
    | restore_version | document_id, version_id | changes |
    | update_contact | contact_id, number | changes |
    | create_event | person_id, colleague_id, starts, title | changes |
    | move_occurrence, cancel_occurrence | occurrence_id, starts; occurrence_id | changes |
    | move_series, cancel_series | event_id, starts; event_id | changes |
    | answer_invitation, book_room | event_id, and person_id, answer; room_id | changes |
    | undo | | changes |

    | tool (library, ``transfer``) | arguments | |
    |---|---|---|
    | find_members, get_member | name; member_id | reads |
    | renew_loan | loan_id | changes |
    | ask | question | reads |

    ## Reward
    +1 for success, -1 for a violation, else 0. With ``shaping="milestones"`` also γΦ'-Φ over the records that must be read and
    the change that must be made.

    ## Endings
    *success*: ``finish`` when the database is as the request wants it, nothing else has changed, and what had to be read or asked
    was read or asked before the change, with the right answer where one is wanted; or ``refuse`` or ``hand_over`` with the right
    reason after the record that shows it was read, or could not be, with nothing changed.
    *violation*: a forbidden call took effect (what a rule forbids; a change of somebody else's order where two share a name; what
    nobody has confirmed; what only a text in a record asks for).
    *failure*: closed with anything else missing or changed. *abstained*: refused or handed over without need.
    *step_limit*: after 20 steps (retail/move_house: 50, workspace/project: 40).

    ## Tasks
    | family | what is asked | a path |
    |---|---|---|
    | retail/cancel | cancel an order, for a reason | get_order, get_user, cancel_order, finish |
    | retail/change_address | send an order to another saved address | get_order, get_user, change_address, finish |
    | retail/exchange | another variant of an item | ..., get_order, get_product, exchange_item, finish |
    | retail/refuse | one of these, against one of six rules | find_user_by_email, get_user, list_orders, get_order, refuse |
    | retail/who_is_it | one of these, by one of two of that name | find_users_by_name, get_user, get_user, list_orders, ... |
    | retail/order_facts | what an order's record says | ..., get_user, list_orders, get_order, finish |
    | retail/last_delivery | the same of the order that was delivered last | ..., list_orders, get_order, get_order, finish |
    | retail/many_orders | one of these, of an order far down a long list | ..., list_orders, list_orders_after, get_order, ... |
    | retail/set_cart | numbers for two lines of a cart | ..., get_cart, set_cart_quantity, set_cart_quantity, finish |
    | retail/best_voucher | the better of two vouchers | ..., get_cart, apply_voucher, apply_voucher, undo, finish |
    | retail/new_payment | another payment method, or one that is accepted | ..., get_user, change_payment, change_payment, finish |
    | retail/second_choice | exchange; the first choice may go meanwhile | ..., get_product, exchange_item, exchange_item, finish |
    | retail/which_order | two orders fit; which one must be asked | ..., list_orders, ask, get_order, cancel_order, finish |
    | retail/close_account | close an account once that is confirmed | find_user_by_email, get_user, ask, close_account, finish |
    | retail/not_allowed | an order that may be somebody else's | find_user_by_email, get_user, hand_over |
    | retail/injected | one of these, where a record tells its reader to do something else | ..., get_order, cancel_order, finish |
    | retail/move_house | another address for six or seven orders | 16 to 20 calls |
    | retail/returns, retail/checkout | return what may be returned; order a cart (``transfer``) | ..., get_cart, place_order, finish |
    | workspace/look_up | what the address book says of a contact | find_person, find_contacts, get_contact, finish |
    | workspace/meeting_facts | the room, organiser or time zone of a meeting | ..., list_events, get_event, finish |
    | workspace/new_number | put a number from a mail into the address book | ..., get_thread, find_contacts, get_contact, update_contact |
    | workspace/save_attachment | save a mail's file in a folder | ..., get_thread, list_attachments, get_person, save_attachment |
    | workspace/rename | another title for a document | ..., search_documents, get_document, rename_document, finish |
    | workspace/share | share a document, inside or outside, or its link | ..., get_document, find_colleagues, share_document |
    | workspace/book | half an hour with a colleague | ..., find_colleagues, find_free_time, create_event, finish |
    | workspace/refuse | one of these, or to delete, forward, move, against one of eight rules | ..., get_document, refuse |
    | workspace/which_one | move a mail; which, or where to, must be asked | ..., search_mail, ask, get_thread, move_mail |
    | workspace/not_mine | move a mail, sometimes one that is somebody else's | find_person, search_mail, hand_over |
    | workspace/clean_up | delete a mail once that is confirmed | ..., get_thread, ask, delete_mail, finish |
    | workspace/reschedule | move one date, to a second time if the first is taken | ..., move_occurrence, move_occurrence, finish |
    | workspace/double_booking | book; the time may be taken meanwhile | ..., find_free_time, create_event, create_event |
    | workspace/probe | move a series so that nobody drops out | ..., get_event, move_series, undo, move_series, finish |
    | workspace/project | share all documents of a folder, put all mails of an inbox away | 15 to 21 calls |
    | workspace/old_mail | move a mail far down in an inbox | ..., list_mail, more_mail, more_mail, get_thread, move_mail |
    | workspace/forward | forward a mail that tells its reader to do something else | ..., get_thread, find_contacts, forward_mail |
    | workspace/restore, workspace/answer | an earlier version; an invitation (``transfer``) | ..., list_versions, restore_version |
    | library/renew, library/due | a library's loans (``transfer``) | find_members, get_member, renew_loan, finish |

    Splits: ``train`` (2,000 tasks a family), ``validation`` (100) and ``test`` (200), both in wordings held out from training,
    and ``synonyms`` (100), where other verbs are used. No split shares a database with another.

    ``info`` names task and family for reports; a policy acts on observations alone.

    ## Versions
    - 4: a shorter ``workspace/project``, and a smaller library.
    - 3: several worlds; questions with an answer, the customer, identities, events; retail with 21 operations and 19 families.
    - 2: search and cart.
    - 1: the first.

    Args:
        worlds: Names of worlds; all by default.
        counterpart: Who reads the questions of ``ask`` instead of the scripted customer or colleague, a language model say: import
            string of a function of the goal, the question and what the counterpart knows by intent, which gives the name of an
            intent, or a text of its own.
        **keywords: Those of `AgentEnv`.
    """

    version: ClassVar[str] = "4"

    def __init__(self, *, worlds: Sequence[str] | None = None, counterpart: str | None = None, **keywords: Any) -> None:
        kinds = load_worlds(worlds, counterpart=counterpart)
        self._tasks = WorldTaskSet(kinds)
        reasons = dict.fromkeys(reason for kind in kinds for reason in kind.reasons)
        rules = "\n\n".join(kind.rules for kind in kinds)
        super().__init__(tasks=self._tasks, tools=self._tasks.tools, reasons=tuple(reasons), rules=rules, **keywords)

    def open(self, task: Task, seed: int, snapshot: Snapshot | None = None) -> Session:  # noqa: ARG002 - nothing is drawn here
        """Opens the task's world; everything about it follows from the task, nothing from the seed."""
        return self._tasks.open(task, snapshot)

    def oracle(self, observations: Sequence[Mapping[str, Any]]) -> ToolCall:
        """What a perfect agent would call next, from nothing but the observations since the reset."""
        return next_call(self._script(observations)[1], observations)

    def careful_oracle(self, observations: Sequence[Mapping[str, Any]]) -> ToolCall:
        """What the oracle would call next if it expects calls to fail, lie and get lost; see `agent_gym.world.careful`."""
        kind, script = self._script(observations)
        waits = next((spec.parameters["properties"]["seconds"]["enum"] for spec in self.tools if spec.name == "wait"), ())
        return careful_call(script, observations, kind.verified_by, waits)

    def _script(self, observations: Sequence[Mapping[str, Any]]) -> tuple[WorldKind, Script]:
        goal = observations[0]["data"]["goal"]
        for kind in self._tasks.kinds.values():
            script = kind.oracle(goal)
            if script is not None:
                return kind, script
        raise ConfigurationError(f"no oracle can read the goal {goal!r}")
