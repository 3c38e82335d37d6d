"""Documents: folders, versions, and whom they are shared with."""

from collections.abc import Callable

from agent_gym.envs.worlds.workspace.clock import wall
from agent_gym.envs.worlds.workspace.operations.steps import Record, done, kept_thread, prefixed
from agent_gym.world import Conflict, World

__all__ = ["DOCUMENTS"]

_FOUND = 8
_NO_ACCESS = "none"
"""What is left of a share that was taken back."""
_NOTES = {
    "confidential": "Confidential: this document does not leave the office, nor has it a link.",
    "signed": "Signed: this document is signed, its title and text stay as they are.",
}
"""What a document says of itself where a rule may matter."""


def search_documents(world: World, person_id: str, title: str) -> Record:
    world.get("people", person_id)
    words = title.lower().split()
    sql = (
        "SELECT document_id, title, CASE documents.person_id WHEN ?1 THEN 'owner' ELSE access END AS role, folder FROM documents"
        " JOIN folders USING (folder_id) LEFT JOIN shares USING (document_id)"
        " WHERE (documents.person_id = ?1 OR colleague_id = ?1 AND access != 'none')"
        f"{prefixed('title', words)} GROUP BY document_id ORDER BY title, document_id LIMIT {_FOUND}"
    )
    return {"person_id": person_id, "documents": world.query(sql, (person_id, *words))}


def list_folder(world: World, folder_id: str) -> Record:
    person_id = world.get("folders", folder_id)["person_id"]
    sql = (
        "SELECT document_id, title, 'owner' AS role, folder FROM documents JOIN folders USING (folder_id) WHERE folder_id = ?"
        " ORDER BY title, document_id"
    )
    return {"person_id": person_id, "documents": world.query(sql, (folder_id,))}


def get_document(world: World, document_id: str) -> Record:
    document = world.get("documents", document_id)
    owner = world.get("people", document["person_id"])
    newest = world.query("SELECT text FROM versions WHERE document_id = ? AND number = ?", (document_id, document["version"]))
    return {
        "document_id": document_id,
        "title": document["title"],
        "owner": owner["person"],
        "owner_email": owner["email"],
        "folder": world.get("folders", document["folder_id"])["folder"],
        "class": document["class"],
        "state": document["state"],
        "link": document["link"],
        "notes": [_NOTES[document[key]] for key in ("class", "state") if document[key] in _NOTES],
        "version": document["version"],
        "text": newest[0]["text"],
    }


def list_shares(world: World, document_id: str) -> Record:
    link = world.get("documents", document_id)["link"]
    shares = world.query(
        "SELECT share_id, coalesce(person, contact) AS shared_with, coalesce(team, company) AS whose, access FROM shares"
        " LEFT JOIN people ON person_id = colleague_id LEFT JOIN contacts USING (contact_id)"
        " WHERE document_id = ? AND access != 'none' ORDER BY share_id",
        (document_id,),
    )
    return {"document_id": document_id, "link": link, "shares": shares}


def list_versions(world: World, document_id: str) -> Record:
    zone = world.get("people", world.get("documents", document_id)["person_id"])["time_zone"]
    found = world.query("SELECT * FROM versions WHERE document_id = ? ORDER BY number", (document_id,))
    return {
        "document_id": document_id,
        "versions": [
            {
                "version_id": one["version_id"],
                "version": one["number"],
                "author": one["author"],
                "saved": wall(one["saved_at"], zone),
                "text": one["text"],
            }
            for one in found
        ],
    }


def share_document(world: World, document_id: str, colleague_id: str, access: str) -> Record:
    if world.get("documents", document_id)["person_id"] == colleague_id:
        raise Conflict(f"document {document_id} belongs to {colleague_id}")
    world.get("people", colleague_id)
    share_id = _share(world, document_id, "colleague_id", colleague_id, access)
    done(world, "share_document", document_id)
    return {"share_id": share_id, "access": access}


def share_outside(world: World, document_id: str, contact_id: str) -> Record:
    world.get("documents", document_id)
    world.get("contacts", contact_id)
    share_id = _share(world, document_id, "contact_id", contact_id, "reader")
    done(world, "share_outside", document_id)
    return {"share_id": share_id, "access": "reader"}


def unshare(world: World, share_id: str) -> Record:
    share = world.get("shares", share_id)
    if share["access"] == _NO_ACCESS:
        raise Conflict(f"what was shared as {share_id} is not any more")
    world.update("shares", share_id, access=_NO_ACCESS)
    done(world, "unshare", share["document_id"])
    return {"share_id": share_id, "access": _NO_ACCESS}


def set_link(world: World, document_id: str, link: str) -> Record:
    if world.get("documents", document_id)["link"] == link:
        raise Conflict(f"the link of document {document_id} is {link} already")
    world.update("documents", document_id, link=link)
    done(world, "set_link", document_id)
    return {"document_id": document_id, "link": link}


def rename_document(world: World, document_id: str, title: str) -> Record:
    _check_title(world, world.get("documents", document_id)["person_id"], title)
    world.update("documents", document_id, title=title)
    done(world, "rename_document", document_id)
    return {"document_id": document_id, "title": title}


def move_document(world: World, document_id: str, folder_id: str) -> Record:
    document = world.get("documents", document_id)
    folder = world.get("folders", folder_id)
    if folder["person_id"] != document["person_id"]:
        raise Conflict(f"folder {folder_id} is not one of the owner of document {document_id}")
    if document["folder_id"] == folder_id:
        raise Conflict(f"document {document_id} is in folder {folder_id} already")
    world.update("documents", document_id, folder_id=folder_id)
    done(world, "move_document", document_id)
    return {"document_id": document_id, "folder": folder["folder"]}


def restore_version(world: World, document_id: str, version_id: str) -> Record:
    document = world.get("documents", document_id)
    version = world.get("versions", version_id)
    if version["document_id"] != document_id:
        raise Conflict(f"version {version_id} is not one of document {document_id}")
    if version["number"] == document["version"]:
        raise Conflict(f"version {version_id} is the newest of document {document_id} already")
    number: int = document["version"] + 1
    _save(world, document_id, number, version["author"], version["text"])
    world.update("documents", document_id, version=number)
    done(world, "restore_version", document_id)
    return {"document_id": document_id, "version": number}


def save_attachment(world: World, attachment_id: str, folder_id: str) -> Record:
    attachment = world.get("attachments", attachment_id)
    person_id = kept_thread(world, attachment["thread_id"])["person_id"]
    if world.get("folders", folder_id)["person_id"] != person_id:
        raise Conflict(f"folder {folder_id} is not one of the person whose mail attachment {attachment_id} is in")
    title = attachment["file"].removesuffix(".pdf")
    _check_title(world, person_id, title)
    document_id = world.new_id("DO")
    kinds = {"class": "internal", "state": "final", "link": "off", "version": 1}
    world.insert("documents", document_id=document_id, person_id=person_id, folder_id=folder_id, title=title, **kinds)
    _save(world, document_id, 1, world.get("people", person_id)["person"], attachment["text"])
    done(world, "save_attachment", document_id)
    return {"document_id": document_id, "title": title}


def _share(world: World, document_id: str, whom: str, key: str, access: str) -> str:
    """Gives somebody that access, in the place of what they had; gives the share's id."""
    shared = world.query(f"SELECT * FROM shares WHERE document_id = ? AND {whom} = ?", (document_id, key))
    if shared and shared[0]["access"] == access:
        raise Conflict(f"{key} is {access} of document {document_id} already")
    share_id: str = shared[0]["share_id"] if shared else world.new_id("SH")
    if shared:
        world.update("shares", share_id, access=access)
    else:
        world.insert("shares", share_id=share_id, document_id=document_id, access=access, **{whom: key})
    return share_id


def _check_title(world: World, person_id: str, title: str) -> None:
    if world.query("SELECT document_id FROM documents WHERE person_id = ? AND title = ?", (person_id, title)):
        raise Conflict(f"there is a document {title!r} of that owner already")


def _save(world: World, document_id: str, number: int, author: str, text: str) -> None:
    version_id = world.new_id("VE")
    world.insert("versions", version_id=version_id, document_id=document_id, number=number, author=author, saved_at=world.clock, text=text)


DOCUMENTS: dict[str, Callable[..., Record]] = {
    function.__name__: function
    for function in (
        search_documents,
        list_folder,
        get_document,
        list_shares,
        list_versions,
        share_document,
        share_outside,
        unshare,
        set_link,
        rename_document,
        move_document,
        restore_version,
        save_attachment,
    )
}
"""The operations by name."""
