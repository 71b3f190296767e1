//! Forms: a first application, a device and a webhook as their fields, and what is remembered of forms that were sent.

pub(crate) mod device;
pub(crate) mod drafts;
pub(crate) mod first_application;
pub(crate) mod registrations;
pub(crate) mod webhook;
