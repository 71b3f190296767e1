//! Third-party programs and libraries against our services, as their users install them.

pub(crate) mod browser;
mod generated_stubs;
mod oauth;
pub(crate) mod python_sdk;
