//! A network whose results are compared, as a section of the page.

use crate::{
    site::page::Time,
    status::{Count, ShadowCodecStatus, ShadowConnection, ShadowStatus},
};

use super::section::shown;

/// A network whose results are compared.
pub(super) struct Shadow {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) addresses: Vec<(String, String)>,
    pub(super) is_connected: bool,
    /// The reason why it has not started; empty if it has.
    pub(super) failure: String,
    pub(super) since: Time,
    pub(super) summary: String,
    pub(super) codecs: Vec<Codec>,
}

/// A row of the table of codecs.
pub(super) struct Codec {
    pub(super) name: String,
    pub(super) summary: String,
    pub(super) causes: String,
    pub(super) time_us_max: u64,
    pub(super) fuel_max: u64,
}

impl Shadow {
    pub(super) fn of(shadow: ShadowStatus) -> Self {
        let ShadowStatus { name, kind, addresses, connection, since, summary, codecs } = shadow;
        let (is_connected, failure) = match connection {
            ShadowConnection::Connected => (true, String::new()),
            ShadowConnection::Disconnected => (false, String::new()),
            ShadowConnection::NotStarted(reason) => (false, shown(&reason)),
        };
        Self {
            name: shown(&name),
            kind: shown(&kind),
            addresses: addresses.iter().map(|(role, address)| (shown(role), shown(address))).collect(),
            is_connected,
            failure,
            since: Time(since.as_nanos()),
            summary: shown(&summary),
            codecs: codecs.into_iter().map(Codec::of).collect(),
        }
    }
}

impl Codec {
    fn of(codec: ShadowCodecStatus) -> Self {
        let ShadowCodecStatus { name, summary, causes, time_us_max, fuel_max } = codec;
        let causes = causes.iter().map(|Count { what, count }| format!("{count} {}", shown(what)));
        let causes = causes.collect::<Vec<_>>().join(", ");
        Self { name: shown(&name), summary: shown(&summary), causes, time_us_max, fuel_max }
    }
}
