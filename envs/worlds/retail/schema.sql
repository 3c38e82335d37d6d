-- The tables of the retail world. Kept lean: SQLite reads this text anew in every episode. Money is integer cents, time is integer seconds. Tables named log_… only log.
CREATE TABLE vouchers (
    voucher TEXT PRIMARY KEY,
    percent INTEGER NOT NULL CHECK (percent BETWEEN 0 AND 100),
    amount_cents INTEGER NOT NULL CHECK (amount_cents >= 0),
    minimum_cents INTEGER NOT NULL CHECK (minimum_cents >= 0)
) STRICT, WITHOUT ROWID;

CREATE TABLE users (
    user_id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    email TEXT NOT NULL UNIQUE,
    standing TEXT NOT NULL,
    voucher TEXT REFERENCES vouchers
) STRICT, WITHOUT ROWID;

CREATE TABLE addresses (
    address_id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users,
    street TEXT NOT NULL,
    city TEXT NOT NULL,
    zip TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE payment_methods (
    payment_id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users,
    kind TEXT NOT NULL,
    accepted INTEGER NOT NULL CHECK (accepted IN (0, 1))
) STRICT, WITHOUT ROWID;

CREATE TABLE products (
    product_id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    category TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE variants (
    variant_id TEXT PRIMARY KEY,
    product_id TEXT NOT NULL REFERENCES products,
    colour TEXT NOT NULL,
    style TEXT NOT NULL,
    price_cents INTEGER NOT NULL CHECK (price_cents >= 0),
    stock INTEGER NOT NULL CHECK (stock >= 0),
    UNIQUE (product_id, colour, style)
) STRICT, WITHOUT ROWID;

CREATE TABLE orders (
    order_id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users,
    address_id TEXT NOT NULL REFERENCES addresses,
    payment_id TEXT NOT NULL REFERENCES payment_methods,
    status TEXT NOT NULL,
    terms TEXT NOT NULL,
    carrier TEXT NOT NULL,
    message TEXT NOT NULL,
    discount_cents INTEGER NOT NULL CHECK (discount_cents >= 0),
    placed_at INTEGER NOT NULL,
    delivered_at INTEGER,
    cancel_reason TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE items (
    item_id TEXT PRIMARY KEY,
    order_id TEXT NOT NULL REFERENCES orders,
    variant_id TEXT NOT NULL REFERENCES variants,
    quantity INTEGER NOT NULL CHECK (quantity > 0),
    price_cents INTEGER NOT NULL CHECK (price_cents >= 0),
    finish TEXT NOT NULL,
    state TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE payments (
    entry_id TEXT PRIMARY KEY,
    order_id TEXT NOT NULL REFERENCES orders,
    payment_id TEXT NOT NULL REFERENCES payment_methods,
    kind TEXT NOT NULL,
    amount_cents INTEGER NOT NULL CHECK (amount_cents > 0),
    booked_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE returns (
    return_id TEXT PRIMARY KEY,
    item_id TEXT NOT NULL UNIQUE REFERENCES items,
    order_id TEXT NOT NULL REFERENCES orders,
    booked_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE carts (
    line_id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users,
    variant_id TEXT NOT NULL REFERENCES variants,
    quantity INTEGER NOT NULL CHECK (quantity > 0),
    UNIQUE (user_id, variant_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE log_operations (
    entry_id TEXT PRIMARY KEY,
    operation TEXT NOT NULL,
    subject TEXT NOT NULL,
    booked_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
