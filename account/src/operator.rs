//! What an operator does to the service's own store, beside what people ask for: no part of any interface.
//!
//! Whoever can open the store and its key file can do anything here anyway, so nothing asks who calls. Every change
//! leaves a line in the audit log.

mod components;
mod roll;
mod users;

pub(crate) use self::roll::Roll;
pub use self::users::UserInfo;

/// The most of one sort that are listed at once; who wants more asks for those after the last one.
pub const LISTED_MAX: usize = 500;
