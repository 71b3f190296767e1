//! Parts that a process has once: settings, audit log, budgets, health and an end.

mod audit;
mod health;
mod logs;
mod settings;
mod shutdown;
mod store_mark;
mod stored_bytes;
