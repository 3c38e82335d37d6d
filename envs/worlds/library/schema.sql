-- A small library. Days are ISO texts.
CREATE TABLE members (
    member_id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    standing TEXT NOT NULL CHECK (standing IN ('good', 'blocked'))
) STRICT;
CREATE TABLE books (
    book_id TEXT PRIMARY KEY,
    title TEXT NOT NULL UNIQUE,
    waiting INTEGER NOT NULL CHECK (waiting >= 0)  -- people who wait for it
) STRICT;
CREATE TABLE loans (
    loan_id TEXT PRIMARY KEY,
    member_id TEXT NOT NULL REFERENCES members,
    book_id TEXT NOT NULL REFERENCES books,
    due TEXT NOT NULL,
    renewals INTEGER NOT NULL CHECK (renewals BETWEEN 0 AND 2),
    UNIQUE (member_id, book_id)
) STRICT;
