//! Which component serves what, and where.
