//! Registration, login and profile.

pub(in crate::http::site) mod confirmation;
pub(in crate::http::site) mod login;
pub(in crate::http::site) mod profile;
pub(in crate::http::site) mod provider;
pub(in crate::http::site) mod register;
