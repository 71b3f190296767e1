//! Messages of an application: filters of those of the past, and those that arrive. What browsers get of them is in
//! `site/messages` and `site/live.rs`.

pub(crate) mod history;
pub(crate) mod live;
