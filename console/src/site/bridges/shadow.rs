//! A network whose results are compared, as a section of the page.

use crate::{
    site::page::{Time, grouped, shown},
    status::{Count, ShadowCodecStatus, ShadowConnection, ShadowStatus},
};

/// A network whose results are compared.
pub(super) struct Shadow {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) addresses: Vec<(String, String)>,
    pub(super) is_started: bool,
    pub(super) is_connected: bool,
    /// The reason why it is not; empty if it is, or if nobody knows.
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
    pub(super) fuel_max: String,
}

impl Shadow {
    pub(super) fn of(shadow: ShadowStatus) -> Self {
        let ShadowStatus { name, kind, addresses, connection, since, summary, codecs } = shadow;
        let is_started = !matches!(connection, ShadowConnection::NotStarted(_));
        let (is_connected, failure) = match connection {
            ShadowConnection::Connected => (true, None),
            ShadowConnection::Disconnected(reason) => (false, reason),
            ShadowConnection::NotStarted(reason) => (false, Some(reason)),
        };
        Self {
            name: shown(&name),
            kind: shown(&kind),
            addresses: addresses.iter().map(|(role, address)| (shown(role), shown(address))).collect(),
            is_started,
            is_connected,
            failure: failure.map(|failure| shown(&failure)).unwrap_or_default(),
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
        Self { name: shown(&name), summary: shown(&summary), causes, time_us_max, fuel_max: grouped(fuel_max) }
    }
}
