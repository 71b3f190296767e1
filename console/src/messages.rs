//! Messages of an application: filters of those of the past, and those that arrive.

pub(crate) mod history;
pub(crate) mod live;
