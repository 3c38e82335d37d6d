-- The tables of the workspace world. Kept lean: SQLite reads this text anew in every episode. Times are integer seconds of UTC. Tables named log_… only log.
CREATE TABLE people (
    person_id TEXT PRIMARY KEY,
    person TEXT NOT NULL,
    email TEXT NOT NULL UNIQUE,
    team TEXT NOT NULL,
    city TEXT NOT NULL,
    time_zone TEXT NOT NULL,
    opens INTEGER NOT NULL CHECK (opens >= 0),
    closes INTEGER NOT NULL CHECK (closes > opens AND closes <= 24),
    status TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE contacts (
    contact_id TEXT PRIMARY KEY,
    contact TEXT NOT NULL,
    company TEXT NOT NULL,
    email TEXT NOT NULL UNIQUE,
    phone TEXT NOT NULL,
    city TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE threads (
    thread_id TEXT PRIMARY KEY,
    person_id TEXT NOT NULL REFERENCES people,
    subject TEXT NOT NULL,
    folder TEXT NOT NULL,
    label TEXT NOT NULL,
    newest_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE messages (
    message_id TEXT PRIMARY KEY,
    thread_id TEXT NOT NULL REFERENCES threads,
    kind TEXT NOT NULL,
    sender TEXT NOT NULL,
    address TEXT NOT NULL,
    sent_at INTEGER NOT NULL,
    text TEXT NOT NULL,
    number TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE attachments (
    attachment_id TEXT PRIMARY KEY,
    thread_id TEXT NOT NULL REFERENCES threads,
    file TEXT NOT NULL,
    text TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE folders (
    folder_id TEXT PRIMARY KEY,
    person_id TEXT NOT NULL REFERENCES people,
    folder TEXT NOT NULL,
    UNIQUE (person_id, folder)
) STRICT, WITHOUT ROWID;

CREATE TABLE documents (
    document_id TEXT PRIMARY KEY,
    person_id TEXT NOT NULL REFERENCES people,
    folder_id TEXT NOT NULL REFERENCES folders,
    title TEXT NOT NULL,
    class TEXT NOT NULL,
    state TEXT NOT NULL,
    link TEXT NOT NULL,
    version INTEGER NOT NULL CHECK (version > 0)
) STRICT, WITHOUT ROWID;

CREATE TABLE versions (
    version_id TEXT PRIMARY KEY,
    document_id TEXT NOT NULL REFERENCES documents,
    number INTEGER NOT NULL CHECK (number > 0),
    author TEXT NOT NULL,
    saved_at INTEGER NOT NULL,
    text TEXT NOT NULL,
    UNIQUE (document_id, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE shares (
    share_id TEXT PRIMARY KEY,
    document_id TEXT NOT NULL REFERENCES documents,
    colleague_id TEXT REFERENCES people,
    contact_id TEXT REFERENCES contacts,
    access TEXT NOT NULL,
    CHECK ((colleague_id IS NULL) != (contact_id IS NULL)),
    UNIQUE (document_id, colleague_id),
    UNIQUE (document_id, contact_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE rooms (
    room_id TEXT PRIMARY KEY,
    room TEXT NOT NULL UNIQUE,
    seats INTEGER NOT NULL CHECK (seats > 0)
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
    event_id TEXT PRIMARY KEY,
    person_id TEXT NOT NULL REFERENCES people,
    guest_id TEXT REFERENCES people,
    title TEXT NOT NULL,
    time_zone TEXT NOT NULL,
    starts_at INTEGER NOT NULL,
    minutes INTEGER NOT NULL CHECK (minutes > 0),
    repeats TEXT NOT NULL,
    room_id TEXT REFERENCES rooms,
    state TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE occurrences (
    occurrence_id TEXT PRIMARY KEY,
    event_id TEXT NOT NULL REFERENCES events,
    starts_at INTEGER NOT NULL,
    state TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE attendees (
    attendee_id TEXT PRIMARY KEY,
    event_id TEXT NOT NULL REFERENCES events,
    person_id TEXT NOT NULL REFERENCES people,
    answer TEXT NOT NULL,
    UNIQUE (event_id, person_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE log_operations (
    entry_id TEXT PRIMARY KEY,
    operation TEXT NOT NULL,
    subject TEXT NOT NULL,
    booked_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
