//! Messages of The Things Stack, which leave as they came but for the payload that is decoded.

pub(super) mod downlink;
pub(super) mod other;
pub(super) mod radio;
mod record;
pub(super) mod report;
pub(super) mod uplink;
