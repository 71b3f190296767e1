//! Pages on which people register, log in and look after their profile.

pub(in crate::site) mod confirmation;
pub(in crate::site) mod login;
pub(in crate::site) mod profile;
pub(in crate::site) mod register;
