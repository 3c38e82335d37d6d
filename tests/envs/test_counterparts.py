"""What the customer of the shop and the colleague of the office make of questions: said in many ways, and what is another matter."""

import pytest

from agent_gym.envs.worlds.retail.counterpart import COUNTERPART
from agent_gym.envs.worlds.workspace.counterpart import COLLEAGUE
from agent_gym.world import Counterpart

WHICH_ORDER = """
Which of your orders do you mean?
Which order?
Which one do you mean?
Which one?
Which order would you like me to change?
What order are you talking about?
Do you mean order W2685652 or W0579291?
Did you mean W2685652 or rather W0579291?
W2685652 or W0579291?
Is it order W2685652, or is it W0579291?
I found two orders with this product. Could you tell me the ID of the one to change?
Could you tell me the order number?
What is the order number?
What's your order number, please?
Please give me the order ID.
Please specify the order.
Please specify which order you mean.
Could you clarify which of the two orders this is about?
Can you tell me which order is the right one?
There are two orders that fit: which is it?
Which of them should I cancel?
Which of these do you want to cancel?
Which purchase is this about?
Are you referring to the first order or the second one?
Is it the older or the newer one?
Is it the newer order or the older one?
Do you want me to cancel the first or the last one?
Could you identify the order you have in mind?
Would you please name the order?
I need to know the number of the order.
Sorry, but I need the number of the right order.
Two of your orders have that item; tell me the one you mean.
Can you let me know what order you are thinking of?
Which one should I cancel, and why?
I'm not sure which order you mean.
"""
WHICH_MAIL = """
Which one do you mean?
Which mail do you mean?
Which e-mail?
Which of the two mails is it?
Which of them?
Which one should I move?
Which message would you like me to move?
Which thread is this about?
What mail are you talking about?
What message do you mean exactly?
Do you mean TH1234567 or TH7654321?
TH1234567 or TH7654321?
Is it TH1234567, or rather TH7654321?
Do you mean the mail from Olga or the one from Ravi?
Are you referring to the older mail or the newer one?
Did you mean the first one or the second one?
Is it the first or the second?
The newer or the older one?
Two mails have this subject. Please specify the one you mean.
Please specify the mail.
Could you tell me the ID of the one to move?
Please give me the thread id.
What is the mail's ID? I need the id of the right mail.
Could you clarify which mail you have in mind?
I found two threads; which is it?
Can you tell me which message is meant?
Would you identify the mail, please?
Please pick the one to be moved.
There are several: which ones?
Can you point me to the right one?
I am not certain which mail you mean.
"""
FOLDER = """
Which folder should it go to?
Which folder?
What folder?
Where to?
Where should it go?
Where should I move it?
Where shall I put it?
Where do you want it?
Where do you want me to move the mail?
Where would you like this mail to be filed?
Where should I move TH1234567 to?
Where does it belong?
To which folder should I move it?
Into which folder?
To which one should I move it?
Into what folder shall it go?
What is the name of the folder?
Please name the folder.
Please tell me the folder.
Please specify the folder for this mail.
Could you tell me which folder you mean?
I need to know the folder.
Should it go to archive or to spam?
Archive or spam?
To spam, or to the archive?
What is the destination?
Could you give me the target folder?
And which other folder do you want it in?
What folder do you have in mind?
Which mailbox should it go to?
Do you want it in the archive folder or in spam?
"""
DELETE = """
Shall I really do that?
Shall I delete it?
Should I delete this mail?
May I delete it now?
Can I go ahead?
Can I remove the mail?
Shall I proceed?
Should I go ahead and delete it?
Do you want me to delete this mail?
Do you really want that?
Do you want to proceed?
Do you want this mail deleted?
Would you like me to delete it?
Would you like the mail to be removed?
Are you sure?
Are you really sure about this?
Are you certain?
You are sure that it can go?
Sure?
Really?
Please confirm.
Can you confirm the deletion?
I need your confirmation before I delete TH1234567.
Is it okay to delete it?
Is it OK if I delete this mail?
Do I have your permission to delete this?
Do you agree that I delete it?
This mail will be deleted for good. OK?
This cannot be undone. Should it be deleted?
I found the mail, shall I erase it?
Is this really what you want?
Delete it?
Proceed?
So you want it gone, right?
Should I move it to the archive folder, or are you sure it should be deleted?
Before I do anything: do you still want me to get rid of it?
Have you changed your mind?
"""
CLOSE = """
Are you sure that you want this?
Are you sure?
Are you certain?
Are you absolutely sure about closing the account?
Closing the account is final, which means it cannot be undone. Are you sure?
Do you want to proceed?
Do you want me to close your account?
Do you really want to close it?
Do you still want to close your account?
Do you wish to go ahead?
Would you like me to close the account now?
Would you like to continue?
Shall I close it?
Shall I close your account?
Should I close the account for good?
May I go ahead?
Can I proceed with the closure?
Could I have your confirmation?
Please confirm that you want this.
Please confirm the closure.
Can you confirm?
Is it okay if I close the account?
Is that really what you want?
Is that okay with you?
Do I have your consent to close the account?
Do you agree to the closure?
Your account will be closed. Is that right?
Your account would be gone: do you want that?
Should your account be closed?
So you want to have it closed, yes?
Close it for good?
Have you changed your mind?
Closing can't be taken back. Proceed?
Really?
Would you mind if I close it now?
"""
WHY = """
Why do you want this?
Why?
May I ask why?
What is the reason?
What's your reason for closing the account?
For what reason?
How come?
What makes you want to leave?
"""

GROUPS: dict[str, tuple[Counterpart, str, str]] = {
    "which order": (COUNTERPART, "which", WHICH_ORDER),
    "close": (COUNTERPART, "confirm", CLOSE),
    "why": (COUNTERPART, "why", WHY),
    "which mail": (COLLEAGUE, "which", WHICH_MAIL),
    "folder": (COLLEAGUE, "folder", FOLDER),
    "delete": (COLLEAGUE, "confirm", DELETE),
}

OTHERWISE: dict[str, str] = {
    "which order": """
        Which address should the order go to?
        Which address?
        Which payment method would you like?
        Which colour do you want?
        What is your phone number?
        What is your e-mail address?
        Could you tell me the address of the order?
        Please tell me the order's status.
        In what order should I do this?
        Where should it be sent?
        What do you mean?
        How can I help you?
        Do you want a refund or a voucher?
        Are you sure?
    """,
    "close": """
        Which account do you mean?
        When should I close it?
        Why do you want to close your account?
        For what reason do you want to close it?
        How do I close an account?
        Which order should I cancel?
        What should I do?
        How should I proceed?
        Can you tell me which account should be closed?
        Could you tell me your address?
        Do you want a refund?
        How are you?
        Will you order again?
        Thank you for your patience.
    """,
    "why": """
        Are you sure?
        Which order?
        What is your name?
        Shall I close it?
    """,
    "which mail": """
        Which folder should it go to?
        Which of the folders?
        To which one should I move it?
        Which colleague do you mean?
        Which day?
        What is your phone number?
        What do you mean?
        Where to?
        Are you sure?
        Tell me one more thing: how are you?
        In which meeting are you?
    """,
    "folder": """
        Which one do you mean?
        Which mail?
        Which mail do you mean, the one in the inbox folder?
        I looked in the inbox folder. Is it the newer or the older one?
        Which folder is it in?
        Where are you?
        Where do you live?
        Shall I delete it?
        Are you sure?
        Is it urgent?
    """,
    "delete": """
        Which mail do you want me to delete?
        Which one should I delete?
        When should I delete it?
        Why do you want me to delete it?
        How should I proceed?
        What should I do with it?
        Where should it go?
        Can you tell me which mail should be deleted?
        Did you read the mail?
        Is there anything else?
        Are you in the office?
        I am not sure what to do.
        Please confirm which mail you mean.
        Are you sure which one it is?
        The mail is in your inbox.
    """,
}


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


@pytest.mark.parametrize("group", GROUPS)
def test_a_question_is_understood_however_it_is_put(group: str) -> None:
    who, intent, questions = GROUPS[group]
    answers = {intent: {"answer": "So it is."}}
    missed = [question for question in lines(questions) if who.answer("", question, answers) != (intent, answers[intent])]
    assert missed == []
    assert all(who.answer("", question.upper(), answers)[0] == intent for question in lines(questions))


@pytest.mark.parametrize("group", OTHERWISE)
def test_what_was_not_asked_is_not_answered(group: str) -> None:
    who, intent, _ = GROUPS[group]
    answers = {intent: {"answer": "So it is."}}
    assert [question for question in lines(OTHERWISE[group]) if who.answer("", question, answers)[1] is not None] == []


def test_of_two_things_that_are_asked_at_once_the_one_with_an_answer_counts() -> None:
    both = "Which one should I cancel, and why?"
    assert COUNTERPART.understand(both, {"why"}) == "why"
    assert COUNTERPART.understand(both, {"which"}) == COUNTERPART.understand(both, {"which", "why"}) == "which"
    assert COUNTERPART.understand(both) == "which"
    assert COUNTERPART.understand("Nice weather.", {"which"}) == ""
    assert COUNTERPART.answer("", both, {"confirm": {"answer": "Yes."}}) == ("which", None)


@pytest.mark.parametrize("who", [COUNTERPART, COLLEAGUE])
def test_what_is_offered_to_those_who_cannot_write_is_understood_alone(who: Counterpart) -> None:
    for name, intent in who.intents.items():
        assert who.understand(intent.question) == name
