//! Registration, login and profile.

pub(in crate::site) mod confirmation;
pub(in crate::site) mod login;
pub(in crate::site) mod profile;
pub(in crate::site) mod register;
