//! The file that keeps what was imported. Each text of a script is in it once.

use std::{collections::HashMap, fs, io, path::Path, sync::Arc};

use client::things_stack::VersionIds;
use serde::{Deserialize, Serialize};
use server::private_file::write_private;

use super::{
    Known, Loader, model_id,
    records::{Device, DeviceRecord, Formatters, Model, ModelRecord, Sources},
};
use crate::things_stack::{formatter::Source, topic::device_key};

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
}

#[derive(Serialize, Deserialize)]
struct StoredDevice {
    application: Box<str>,
    id: Box<str>,
    formatters: Option<[StoredSource; 2]>,
    version: Option<VersionIds>,
}

#[derive(Serialize, Deserialize)]
struct StoredModel {
    application: String,
    version: VersionIds,
    formatters: [StoredSource; 2],
}

#[derive(Serialize, Deserialize)]
struct StoredSource {
    formatter: String,
    /// Its place among the texts.
    text: usize,
}

/// What is written.
#[derive(Default)]
pub(super) struct Contents {
    pub(super) defaults: Vec<(Box<str>, Option<Arc<Formatters>>)>,
    pub(super) devices: Vec<Arc<Device>>,
    pub(super) models: Vec<Arc<Model>>,
}

/// Adds what the file has. A file that cannot be used is as good as none: everything is fetched again.
pub(super) fn read(path: &Path, loader: &Loader, known: &mut Known) {
    let file = match fs::read(path) {
        Ok(bytes) => serde_json::from_slice::<File>(&bytes).map_err(io::Error::from),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return,
        Err(error) => Err(error),
    };
    match file {
        Ok(file) if file.version == VERSION => add(file, loader, known),
        Ok(_) => tracing::info!(path = %path.display(), "the cache is of another version: importing again"),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "cannot read the cache: importing again");
        }
    }
}

fn add(file: File, loader: &Loader, known: &mut Known) {
    let File { texts, applications, devices, models, .. } = file;
    let source = |StoredSource { formatter, text }: StoredSource| {
        let text = texts.get(text).cloned().unwrap_or_default();
        loader.source(formatter, text)
    };
    let sources = |stored: [StoredSource; 2]| stored.map(source);
    for StoredApplication { id, formatters } in applications {
        let name = format!("default formatter of {id}");
        let formatters = formatters.map(|stored| Arc::new(loader.formatters(sources(stored), &id, &name)));
        known.defaults.insert(id, formatters);
    }
    for StoredDevice { application, id, formatters, version } in devices {
        let record = DeviceRecord { application, id, formatters: formatters.map(sources), version };
        let key = device_key(&record.application, &record.id);
        known.devices.put(key.into(), Arc::new(loader.device(record, None)));
    }
    for StoredModel { application, version, formatters } in models {
        let id = model_id(&version);
        let record = ModelRecord { application, version, sources: sources(formatters) };
        known.models.put(id.as_str().into(), Arc::new(loader.model(record, &id, None)));
    }
}

/// Writes the file in one step; only its owner may read it.
pub(super) fn write(path: &Path, contents: &Contents) -> io::Result<()> {
    let mut texts = Texts::default();
    let mut file = File { version: VERSION, ..File::default() };
    for (id, formatters) in &contents.defaults {
        let formatters = formatters.as_ref().map(|formatters| texts.sources(formatters.sources()));
        file.applications.push(StoredApplication { id: id.clone(), formatters });
    }
    for device in &contents.devices {
        let DeviceRecord { application, id, formatters, version } = device.record.clone();
        let formatters = formatters.as_ref().map(|sources| texts.sources(sources));
        file.devices.push(StoredDevice { application, id, formatters, version });
    }
    for model in &contents.models {
        let ModelRecord { application, version, sources } = model.record.clone();
        file.models.push(StoredModel { application, version, formatters: texts.sources(&sources) });
    }
    file.texts = texts.list;
    write_private(path, &serde_json::to_vec(&file)?)
}

/// The texts of a file, each once.
#[derive(Default)]
struct Texts {
    places: HashMap<Arc<str>, usize>,
    list: Vec<String>,
}

impl Texts {
    fn sources(&mut self, sources: &Sources) -> [StoredSource; 2] {
        sources.each_ref().map(|Source { formatter, parameter }| {
            let text = *self.places.entry(parameter.clone()).or_insert_with(|| {
                self.list.push(parameter.to_string());
                self.list.len() - 1
            });
            StoredSource { formatter: formatter.clone(), text }
        })
    }
}
