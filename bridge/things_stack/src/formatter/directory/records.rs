//! Devices and models, in memory and in the cache file.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Weak},
    time::Duration,
};

use client::things_stack::{self, VersionIds};
use parking_lot::Mutex;
use runtime::{Pool, SourcesHash};
use tokio::time::Instant;

use crate::formatter::{
    Formatter, FormatterSource,
    javascript::{self, Role},
};

/// The two formatters of a device, an application or a model, as the API has them.
pub(super) type Sources = [FormatterSource; 2];

/// The formatters of a device or an application.
pub(crate) struct Formatters {
    pub(crate) up: Choice,
    pub(crate) down: Choice,
    sources: Sources,
}

/// Defaults of an application, for devices without settings of their own.
#[derive(Default)]
pub(super) struct Defaults {
    /// `None` if the application has none.
    pub(super) formatters: Option<Arc<Formatters>>,
    /// True if payloads stay encrypted in The Things Stack.
    pub(super) is_encrypted: bool,
}

/// Choice of a formatter.
pub(crate) enum Choice {
    /// That of the device's model.
    Repository,
    Own(Arc<Formatter>),
}

/// A device with its formatters, and the age of what is known of it.
pub(super) struct Device {
    pub(super) record: DeviceRecord,
    /// None if those of the application apply.
    pub(super) formatters: Option<Arc<Formatters>>,
    /// Time at which it was fetched; `None` if it was read from disk.
    pub(super) fetched: Option<Instant>,
}

/// A device as the cache file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DeviceRecord {
    pub(super) application: Box<str>,
    pub(super) id: Box<str>,
    pub(super) formatters: Option<Sources>,
    pub(super) version: Option<VersionIds>,
    /// True if payloads stay encrypted in The Things Stack; `None` if the application decides.
    pub(super) is_encrypted: Option<bool>,
}

/// A model of the device repository.
pub(super) struct Model {
    pub(super) record: ModelRecord,
    pub(super) up: Arc<Formatter>,
    pub(super) down: Arc<Formatter>,
    pub(super) down_decoder: Arc<Formatter>,
    pub(super) fetched: Option<Instant>,
}

/// A model as the cache file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ModelRecord {
    /// An application whose key may ask for it.
    pub(super) application: String,
    pub(super) version: VersionIds,
    pub(super) sources: Sources,
    /// Decoder of downlinks, which is often the same text as their encoder.
    pub(super) down_decoder: FormatterSource,
}

/// Makes formatters. Devices of an application whose formatters have the same text share one.
pub(crate) struct Loader {
    pool: Arc<Pool>,
    wait_max: Duration,
    made: Mutex<HashMap<(String, Role, SourcesHash), Weak<Formatter>>>,
    texts: Mutex<HashSet<Arc<str>>>,
}

impl Loader {
    pub(crate) fn new(pool: Arc<Pool>, wait_max: Duration) -> Self {
        Self { pool, wait_max, made: Mutex::default(), texts: Mutex::default() }
    }

    /// A formatter as the API has it.
    pub(super) fn source(&self, formatter: String, parameter: String) -> FormatterSource {
        let mut texts = self.texts.lock();
        let parameter = match texts.get(parameter.as_str()) {
            Some(text) => text.clone(),
            None => {
                let text: Arc<str> = parameter.into();
                texts.insert(text.clone());
                text
            }
        };
        FormatterSource { formatter, parameter }
    }

    /// The formatters as the API has them.
    pub(super) fn sources(&self, found: things_stack::Formatters) -> Sources {
        [
            self.source(found.up_formatter, found.up_formatter_parameter),
            self.source(found.down_formatter, found.down_formatter_parameter),
        ]
    }

    /// Forgets what is no longer used.
    pub(super) fn clean(&self) {
        self.made.lock().retain(|_, formatter| formatter.strong_count() > 0);
        self.texts.lock().retain(|text| Arc::strong_count(text) > 1);
    }

    /// The formatters of an application, or of one of its devices.
    pub(super) fn formatters(&self, sources: Sources, application: &str, name: &str) -> Formatters {
        let choice = |source: &FormatterSource, role| match source.is_repository() {
            true => Choice::Repository,
            false => Choice::Own(self.formatter(source.clone(), role, application, name)),
        };
        let [up, down] = &sources;
        Formatters { up: choice(up, Role::Uplink), down: choice(down, Role::Downlink), sources }
    }

    pub(super) fn device(&self, record: DeviceRecord, fetched: Option<Instant>) -> Device {
        let name = format!("formatter of {}/{}", record.application, record.id);
        let formatters =
            record.formatters.clone().map(|sources| Arc::new(self.formatters(sources, &record.application, &name)));
        Device { record, formatters, fetched }
    }

    pub(super) fn model(&self, record: ModelRecord, id: &str, fetched: Option<Instant>) -> Model {
        let [up, down] = record.sources.clone();
        let up = self.formatter(up, Role::Uplink, id, id);
        let down = self.formatter(down, Role::Downlink, id, id);
        let down_decoder = self.formatter(record.down_decoder.clone(), Role::Downlink, id, id);
        Model { record, up, down, down_decoder, fetched }
    }

    fn formatter(&self, source: FormatterSource, role: Role, scope: &str, name: &str) -> Arc<Formatter> {
        let hash = javascript::sources(&format!("{}\n{}", source.formatter, source.parameter), role).hash();
        let mut made = self.made.lock();
        let key = (scope.to_owned(), role, hash);
        if let Some(formatter) = made.get(&key).and_then(Weak::upgrade) {
            return formatter;
        }
        let [a, b, c, d, ..] = *hash.as_bytes();
        let id = format!("{scope}/{:08x}", u32::from_be_bytes([a, b, c, d]));
        let run_by = (self.pool.clone(), self.wait_max);
        let formatter = Arc::new(Formatter::new(source, role, (id, name.to_owned()), run_by));
        made.insert(key, Arc::downgrade(&formatter));
        formatter
    }
}

impl Defaults {
    /// Returns true if both have the same sources and the same encryption.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let sources = |defaults: &Self| defaults.formatters.as_deref().map(|formatters| formatters.sources.clone());
        self.is_encrypted == other.is_encrypted && sources(self) == sources(other)
    }
}

impl Formatters {
    pub(super) fn sources(&self) -> &Sources {
        &self.sources
    }
}
