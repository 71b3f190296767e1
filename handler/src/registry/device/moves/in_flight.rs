//! Devices between two applications: what each of them stores while one moves.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use store::{Batch, Entry, Key};
use types::{AppId, DevId, DevicePath, Timestamp};

use super::embedded;
use crate::{
    Error,
    registry::application::{euis::Euis, store_keys},
};

/// The first word of what the claims of EUIs say while their device moves.
const MOVING: &str = "moving";

/// A device, and the application and the id that it gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// Its application and its id.
    pub from: (AppId, DevId),
    /// Its new application, and its id there.
    pub to: (AppId, DevId),
}

/// The old application's record of a device from the decision to move it until the new one has it.
#[derive(Serialize, Deserialize)]
pub(super) struct Leaving {
    pub(super) to: (AppId, DevId),
    /// Time at which the move began, which tells it from others.
    pub(super) at: Timestamp,
    /// True once it is decided that it goes back.
    #[serde(default)]
    pub(super) goes_back: bool,
    /// The record of the device in its new application.
    #[serde(with = "embedded")]
    pub(super) device: Vec<u8>,
    pub(super) counters: Option<Box<RawValue>>,
    pub(super) nonces: Option<Box<RawValue>>,
    /// Those that waited for it. They come back with it, and otherwise are dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) downlinks: Option<Box<RawValue>>,
}

/// The new application's record of a device while it moves.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Arriving {
    pub(super) from: (AppId, DevId),
    /// Time at which the move began.
    pub(super) at: Timestamp,
    /// False as long as only the id is reserved.
    pub(super) is_there: bool,
    /// The EUIs that are reserved beside the id.
    #[serde(default)]
    pub(super) euis: Option<Euis>,
}

impl Move {
    /// Succeeds if the applications differ; [`Error::Invalid`] otherwise.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.from.0 == self.to.0 {
            let rule = format_args!("the device is in application {} already: name another one", self.to.0);
            return Err(Error::invalid("Application", rule));
        }
        Ok(())
    }

    pub(super) fn ids(&self) -> [&(AppId, DevId); 2] {
        [&self.from, &self.to]
    }

    /// The claims of both applications to the EUIs while the device moves, which are nobody else's. It says which move
    /// that is.
    pub(super) fn claim(&self, at: Timestamp) -> String {
        let Self { from, to } = self;
        format!("{MOVING} {}:{} to {}:{} since {}", from.0, from.1, to.0, to.1, at.as_nanos())
    }
}

impl Arriving {
    pub(super) fn read(entry: Option<&Entry>) -> Result<Option<Self>, Error> {
        Ok(entry.map(|entry| serde_json::from_slice(&entry.value)).transpose()?)
    }

    /// Returns true if it is of a device that comes from there with a move that began then.
    pub(super) fn is_of(&self, from: &(AppId, DevId), at: Timestamp) -> bool {
        (&self.from, self.at) == (from, at)
    }
}

pub(in crate::registry::device) fn is_moving(claim: &Entry) -> bool {
    claim.value.starts_with(MOVING.as_bytes())
}

/// The keys of what is stored about a device that leaves and about one that arrives under an id.
pub(in crate::registry::device) fn keys(path: DevicePath<'_>) -> Result<[Key; 2], Error> {
    Ok([store_keys::leaving(path)?, store_keys::arriving(path)?])
}

/// Requires that an id at which there is no device is not one that leaves or arrives; [`Error::Moving`] if it is.
pub(in crate::registry::device) fn expect_free(
    batch: Batch,
    path: DevicePath<'_>,
    [leaving, arriving]: &[Option<Entry>; 2],
) -> Result<Batch, Error> {
    let is_kept_free = Arriving::read(arriving.as_ref())?.is_some_and(|arriving| !arriving.is_there);
    if leaving.is_some() || is_kept_free {
        return Err(error(path));
    }
    let [leaving_key, arriving_key] = keys(path)?;
    Ok(batch.expect_absent(leaving_key).expect_entry(&arriving_key, arriving.as_ref()))
}

/// A stored record of JSON as it is.
pub(super) fn raw(record: &[u8]) -> Result<Box<RawValue>, Error> {
    Ok(serde_json::from_slice(record)?)
}

/// The bytes of such a record.
pub(super) fn bytes(record: &RawValue) -> Vec<u8> {
    record.get().as_bytes().to_vec()
}

/// The error for a device that moves at this very moment.
pub(in crate::registry::device) fn error(path: DevicePath<'_>) -> Error {
    Error::Moving(format!("device {path}"))
}
