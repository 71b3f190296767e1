//! Functions before they are saved: trials on messages of the past, and the comparison with those that are live. What
//! browsers get of them is in `site/functions`.

pub(crate) mod comparison;
pub(crate) mod correction;
pub(crate) mod failed_line;
pub(crate) mod trial;
