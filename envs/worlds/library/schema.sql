-- A small library. Days are ISO texts.
CREATE TABLE members (
    member_id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    standing TEXT NOT NULL CHECK (standing IN ('good', 'blocked'))
) STRICT;
CREATE TABLE loans (
    loan_id TEXT PRIMARY KEY,
    member_id TEXT NOT NULL REFERENCES members,
    title TEXT NOT NULL,
    due TEXT NOT NULL,
    renewals INTEGER NOT NULL CHECK (renewals BETWEEN 0 AND 2),
    waiting INTEGER NOT NULL CHECK (waiting >= 0),  -- people who wait for the book
    UNIQUE (member_id, title)
) STRICT;
