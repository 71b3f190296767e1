//! The file that keeps what was imported.

use std::{fs, io, path::Path, sync::Arc};

use serde::{Deserialize, Serialize};
use server::private_file::write_private;

use super::{Codecs, Device, Known, Profile, records::ProfileRecord};

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

/// Adds what the file has. A file that cannot be used is as good as none: everything is fetched again.
pub(super) fn read(path: &Path, codecs: &Codecs, known: &mut Known) {
    let imported = match fs::read(path) {
        Ok(bytes) => serde_json::from_slice::<Imported>(&bytes).map_err(io::Error::from),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return,
        Err(error) => Err(error),
    };
    match imported {
        Ok(imported) if imported.version == VERSION => {
            for record in imported.profiles {
                known.profiles.put(record.id.as_str().into(), Arc::new(codecs.load(record)));
            }
            for device in imported.devices {
                known.devices.put(device.dev_eui.clone(), Arc::new(device));
            }
        }
        Ok(_) => tracing::info!(path = %path.display(), "the cache is of another version: importing again"),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "cannot read the cache: importing again");
        }
    }
}

/// Writes the file in one step; only its owner may read it.
pub(super) fn write(path: &Path, profiles: &[Arc<Profile>], devices: &[Arc<Device>]) -> io::Result<()> {
    let exported = Exported {
        version: VERSION,
        profiles: profiles.iter().map(|profile| &profile.record).collect(),
        devices: devices.iter().map(|device| &**device).collect(),
    };
    write_private(path, &serde_json::to_vec(&exported)?)
}
