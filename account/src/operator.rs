//! What an operator does to the service's own store, beside what people ask for: no part of any interface.
//!
//! Whoever can open the store and its key file can do anything here anyway, so nothing asks who calls. Every change
//! leaves a line in the audit log.

mod clients;
mod components;
mod users;

pub use self::{clients::OwnClient, users::UserInfo};
pub use crate::id_index::LISTED_MAX;
