//! The file that keeps what was imported.

use std::{path::Path, sync::Arc};

use bridge::codec::imports::{self, Export};
use serde::{Deserialize, Serialize};

use super::{CachedCodecs, Codecs, Device, records::ProfileRecord};

/// Increased when a file of the last version cannot be read any more.
const VERSION: u32 = 1;

#[derive(Deserialize)]
struct Imported {
    version: u32,
    profiles: Vec<ProfileRecord>,
    devices: Vec<Device>,
}

#[derive(Serialize)]
struct Exported<'a> {
    version: u32,
    profiles: Vec<&'a ProfileRecord>,
    devices: Vec<&'a Device>,
}

/// Adds what the file has.
pub(super) fn read(file: &Path, codecs: &Codecs, known: &mut CachedCodecs) {
    let Some(Imported { profiles, devices, .. }) = imports::read(file, |file: &Imported| file.version == VERSION)
    else {
        return;
    };
    for record in profiles {
        known.profiles.put(record.id.as_str().into(), Arc::new(codecs.load(record)));
    }
    for device in devices {
        known.devices.put(device.dev_eui.clone(), Arc::new(device));
    }
}

impl Export for CachedCodecs {
    fn export(&self) -> impl FnOnce() -> serde_json::Result<Vec<u8>> + use<> {
        // Least recently used first, so that reading restores the order.
        let profiles: Vec<_> = self.profiles.iter().rev().map(|(_, profile)| profile.clone()).collect();
        let devices: Vec<_> = self.devices.iter().rev().map(|(_, device)| device.clone()).collect();
        move || {
            serde_json::to_vec(&Exported {
                version: VERSION,
                profiles: profiles.iter().map(|profile| &profile.record).collect(),
                devices: devices.iter().map(|device| &**device).collect(),
            })
        }
    }
}
