//! Applications: their settings, their payload functions, and where these are stored.

mod applications;
mod summary;

pub(crate) use self::applications::{PREFIX, entry, not_found, outline_key};
pub use self::{
    applications::{Application, Applications, Conversion, Functions, JoinKey},
    summary::Outline,
};
