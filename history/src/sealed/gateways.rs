//! Gateways in columns of their own. Metadata is JSON that differs in each uplink, mostly by a few values of its gateways:
//! these are taken out, and what is left is the same in many uplinks.

pub(crate) mod columns;
pub(crate) mod join;
pub(crate) mod lists;
mod scan;
mod split;
#[cfg(test)]
mod tests;

use types::Timestamp;

/// Values of a gateway that have columns. A member that is not among them is in its metadata, as it was written.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Values<'a> {
    pub(crate) gtw_id: Option<&'a str>,
    pub(crate) timestamp: Option<u32>,
    /// None also stands for the time when the uplink was received.
    pub(crate) time: Option<Timestamp>,
    pub(crate) channel: Option<u32>,
    pub(crate) rssi: Option<f32>,
    pub(crate) snr: Option<f32>,
}

/// The metadata's placeholder for a value that was taken out.
pub(crate) const TAKEN: &str = "null";

/// Definition levels of what is in a list of gateways.
pub(crate) mod level {
    /// There is no list: the metadata is whole.
    pub(crate) const WHOLE: i16 = 0;
    /// The list is empty.
    pub(crate) const EMPTY: i16 = 1;
    /// There is a gateway, but not this value of it.
    pub(crate) const GATEWAY: i16 = 2;
    /// There is a value.
    pub(crate) const VALUE: i16 = 3;
}
