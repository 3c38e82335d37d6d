-- What a page shows of a task, and what was saved on it.
CREATE TABLE widgets (
    name TEXT PRIMARY KEY,
    given TEXT NOT NULL,  -- JSON
    value TEXT NOT NULL
) STRICT;
