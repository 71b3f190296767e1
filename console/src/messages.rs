//! Messages of an application: filters of those of the past, one as a test and as a link into the playground, its
//! fields on a line, and those that arrive. What browsers get of them is in `site/messages`.

pub(crate) mod example;
pub(crate) mod fields;
pub(crate) mod history;
pub(crate) mod live;
pub(crate) mod playground;
