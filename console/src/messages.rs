//! Messages of an application: filters of those of the past, links of one into the playground, and those that arrive.
//! What browsers get of them is in `site/messages` and `site/live.rs`.

pub(crate) mod history;
pub(crate) mod live;
pub(crate) mod playground;
