//! The stream in which ChirpStack keeps the events of devices in Redis, read from its first entry to its last.

use std::path::PathBuf;

use api::chirpstack_events::integration::UplinkEvent;
use link::{
    Remote,
    redis::{Node, StoredEntry, StreamReader},
};
use prost::Message;
use serde_json::value::to_raw_value;
use tokio::runtime::Handle;
use types::Timestamp;
use url::Url;

use crate::{
    Batch, Error, RecordedUplink, UplinkSource,
    stored::{Name, StoredResult},
};

pub use link::redis::is_redis;

/// The stream of all devices, where ChirpStack has no `key_prefix`.
const STREAM: &str = "device:stream:event";
/// The name of uplinks in it.
const UP: &str = "up";
const URL: &str = "must be like redis://user@host:6379/0?stream=device:stream:event, or rediss:// for TLS";

/// The server, and how to log in there.
#[derive(Clone, Debug)]
pub struct RedisSettings {
    /// As in `redis://user@host:6379/0?stream=device:stream:event`.
    pub url: String,
    /// A file with the password.
    pub password_file: Option<PathBuf>,
    /// A PEM file with the certificate authority of the server; the system's if there is none.
    pub authority: Option<PathBuf>,
}

/// The entries of a stream. They are read on a thread that may wait.
pub struct StreamEvents {
    reader: StreamReader,
    runtime: Handle,
    /// The number of the next entry.
    next: u64,
}

impl StreamEvents {
    /// Connects, and begins with the oldest entry.
    pub async fn open(settings: RedisSettings) -> Result<Self, Error> {
        let (server, key) = parts(settings)?;
        let node = Node::new(&server, "redis").map_err(invalid)?;
        let reader = StreamReader::open(&node, &key).await?;
        Ok(Self { reader, runtime: Handle::current(), next: 1 })
    }
}

impl UplinkSource for StreamEvents {
    fn next(&mut self) -> Result<Option<Batch>, Error> {
        let entries = self.runtime.block_on(self.reader.next())?;
        let first = self.next;
        self.next += entries.len() as u64;
        Ok((!entries.is_empty()).then(|| Batch::uplinks(first, entries.iter().map(uplink).collect())))
    }

    fn unit(&self) -> &'static str {
        "entry"
    }
}

/// The server and the stream that a URL names.
fn parts(settings: RedisSettings) -> Result<(Remote, String), Error> {
    let wrong = |reason: &str| Error::Invalid(format!("the URL {reason}"));
    let mut url = Url::parse(&settings.url).map_err(|_| wrong(URL))?;
    if url.password().is_some() {
        return Err(wrong("must not have a password: use --password-file"));
    }
    let mut key = STREAM.to_owned();
    for (name, value) in url.query_pairs() {
        match &*name {
            "stream" => key = value.into_owned(),
            _ => return Err(wrong(URL)),
        }
    }
    let username = Some(url.username().to_owned()).filter(|name| !name.is_empty());
    url.set_query(None);
    url.set_username("").map_err(|()| wrong(URL))?;
    let RedisSettings { password_file, authority: ca_certificate, .. } = settings;
    Ok((Remote { url: url.into(), username, password_file, ca_certificate, ..Remote::default() }, key))
}

/// The error in the words of the command, which has no settings.
fn invalid(error: link::Error) -> Error {
    match error {
        link::Error::Setting { name, reason, .. } => {
            let part = name.rsplit('.').next().unwrap_or_default().replace('_', " ");
            Error::Invalid(format!("the {part} {reason}"))
        }
        error => error.into(),
    }
}

fn uplink(entry: &StoredEntry) -> StoredResult {
    if entry.name != UP {
        return Ok(None);
    }
    let event = UplinkEvent::decode(&*entry.value);
    let event = event.map_err(|error| format!("it is not the protobuf of ChirpStack 4: {error}"))?;
    let info = event.device_info.unwrap_or_default();
    let name = |id, other| Name::new(Some(id), Some(other));
    let nanos = |seconds: i64, nanos: i32| seconds.saturating_mul(1_000_000_000).saturating_add(nanos.into());
    let object = event.object.map(|object| to_raw_value(&object)).transpose();
    Ok(Some(RecordedUplink {
        id: event.deduplication_id,
        application: name(info.application_id, info.application_name),
        device: name(info.dev_eui, info.device_name),
        profile: name(info.device_profile_id, info.device_profile_name),
        payload: event.data,
        port: u8::try_from(event.f_port).map_err(|_| "its port is not a number from 0 to 255")?,
        time: event.time.map(|time| Timestamp::from_nanos(nanos(time.seconds, time.nanos))),
        object: object.map_err(|error| format!("its object has no JSON: {error}"))?,
        ..RecordedUplink::default()
    }))
}
