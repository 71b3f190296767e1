//! The file that keeps what was imported. Each text of a script is in it once.

use std::{collections::HashMap, path::Path, sync::Arc};

use bridge::codec::imports::{self, Export};
use client::things_stack::VersionIds;
use serde::{Deserialize, Serialize};

use super::{
    CachedFormatters, Loader, model_id,
    records::{Defaults, Device, DeviceRecord, Model, ModelRecord, Sources},
};
use crate::{application::topic::device_key, formatter::FormatterSource};

/// Increased when a file of the last version cannot be read any more.
const VERSION: u32 = 1;

#[derive(Default, Serialize, Deserialize)]
struct File {
    version: u32,
    texts: Vec<String>,
    applications: Vec<StoredApplication>,
    devices: Vec<StoredDevice>,
    models: Vec<StoredModel>,
}

#[derive(Serialize, Deserialize)]
struct StoredApplication {
    id: Box<str>,
    formatters: Option<[StoredSource; 2]>,
    #[serde(default)]
    is_encrypted: bool,
}

#[derive(Serialize, Deserialize)]
struct StoredDevice {
    application: Box<str>,
    id: Box<str>,
    formatters: Option<[StoredSource; 2]>,
    version: Option<VersionIds>,
    #[serde(default)]
    is_encrypted: Option<bool>,
}

#[derive(Serialize, Deserialize)]
struct StoredModel {
    application: String,
    version: VersionIds,
    formatters: [StoredSource; 2],
    /// Files of an earlier release do not have it.
    down_decoder: Option<StoredSource>,
}

#[derive(Serialize, Deserialize)]
struct StoredSource {
    formatter: String,
    /// Its place among the texts.
    text: usize,
}

/// Adds what the file has.
pub(super) fn read(file: &Path, loader: &Loader, known: &mut CachedFormatters) {
    let Some(file) = imports::read(file, |file: &File| file.version == VERSION) else { return };
    let File { texts, applications, devices, models, .. } = file;
    let source = |StoredSource { formatter, text }: StoredSource| {
        let text = texts.get(text).cloned().unwrap_or_default();
        loader.source(formatter, text)
    };
    let sources = |stored: [StoredSource; 2]| stored.map(source);
    for StoredApplication { id, formatters, is_encrypted } in applications {
        let name = format!("default formatter of {id}");
        let formatters = formatters.map(|stored| Arc::new(loader.formatters(sources(stored), &id, &name)));
        known.defaults.insert(id, Arc::new(Defaults { formatters, is_encrypted }));
    }
    for StoredDevice { application, id, formatters, version, is_encrypted } in devices {
        let record = DeviceRecord { application, id, formatters: formatters.map(sources), version, is_encrypted };
        let key = device_key(&record.application, &record.id);
        known.devices.put(key.into(), Arc::new(loader.device(record, None)));
    }
    for StoredModel { application, version, formatters, down_decoder } in models {
        let id = model_id(&version);
        let down_decoder = down_decoder.map(source).unwrap_or_default();
        let record = ModelRecord { application, version, sources: sources(formatters), down_decoder };
        known.models.put(id.as_str().into(), Arc::new(loader.model(record, &id, None)));
    }
}

impl Export for CachedFormatters {
    fn export(&self) -> impl FnOnce() -> serde_json::Result<Vec<u8>> + use<> {
        let defaults: Vec<_> = self.defaults.iter().map(|(id, found)| (id.clone(), found.clone())).collect();
        // Least recently used first, so that reading restores the order.
        let devices: Vec<_> = self.devices.iter().rev().map(|(_, device)| device.clone()).collect();
        let models: Vec<_> = self.models.iter().rev().map(|(_, model)| model.clone()).collect();
        move || to_json(&defaults, &devices, &models)
    }
}

fn to_json(
    defaults: &[(Box<str>, Arc<Defaults>)],
    devices: &[Arc<Device>],
    models: &[Arc<Model>],
) -> serde_json::Result<Vec<u8>> {
    let mut texts = Texts::default();
    let mut file = File { version: VERSION, ..File::default() };
    for (id, defaults) in defaults {
        let formatters = defaults.formatters.as_ref().map(|formatters| texts.sources(formatters.sources()));
        let is_encrypted = defaults.is_encrypted;
        file.applications.push(StoredApplication { id: id.clone(), formatters, is_encrypted });
    }
    for device in devices {
        let DeviceRecord { application, id, formatters, version, is_encrypted } = device.record.clone();
        let formatters = formatters.as_ref().map(|sources| texts.sources(sources));
        file.devices.push(StoredDevice { application, id, formatters, version, is_encrypted });
    }
    for model in models {
        let ModelRecord { application, version, sources, down_decoder } = model.record.clone();
        let (formatters, down_decoder) = (texts.sources(&sources), Some(texts.source(&down_decoder)));
        file.models.push(StoredModel { application, version, formatters, down_decoder });
    }
    file.texts = texts.list;
    serde_json::to_vec(&file)
}

/// The texts of a file, each once.
#[derive(Default)]
struct Texts {
    places: HashMap<Arc<str>, usize>,
    list: Vec<String>,
}

impl Texts {
    fn sources(&mut self, sources: &Sources) -> [StoredSource; 2] {
        sources.each_ref().map(|source| self.source(source))
    }

    fn source(&mut self, FormatterSource { formatter, parameter }: &FormatterSource) -> StoredSource {
        let text = *self.places.entry(parameter.clone()).or_insert_with(|| {
            self.list.push(parameter.to_string());
            self.list.len() - 1
        });
        StoredSource { formatter: formatter.clone(), text }
    }
}
