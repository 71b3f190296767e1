//! Operations of the operator on the service's own store. They are not part of any API.
//!
//! Whoever can open the store and its key file can do anything anyway, so there is no authorisation. Every change is in
//! the audit log.

mod clients;
mod components;
mod signing_keys;
mod users;

pub use self::{clients::OperatorClient, users::UserInfo};
pub use crate::id_index::LISTED_MAX;
