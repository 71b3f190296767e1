//! Operations for the operator only, on the service's own store.
//!
//! Nothing here checks rights, because whoever can open the store and its key file can do anything anyway. Every change
//! is written to the audit log.

mod clients;
mod components;
mod signing_keys;
mod users;

pub use self::clients::OperatorClient;
pub use crate::documents::id_index::LISTED_MAX;
