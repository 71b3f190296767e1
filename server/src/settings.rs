//! Settings in layers: defaults, then a file, then environment variables, then flags.

mod environment;
mod print;

use std::path::Path;

use figment::{
    Figment, Metadata, Source,
    error::Kind,
    providers::{Format, Serialized, Toml},
};
use serde::{Serialize, de::DeserializeOwned};

use crate::Error;

use self::environment::Environment;
pub use self::print::print;

/// What environment variables of ours begin with.
pub const ENVIRONMENT_PREFIX: &str = "AIRLOCK_";

/// The layers that settings come from; a later one wins, value by value.
///
/// Defaults are the `Default` of the settings themselves: give their structs `#[serde(default, deny_unknown_fields)]`.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    figment: Figment,
}

impl Layers {
    /// Nothing but defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a TOML file; that it cannot be read is an error when the settings are loaded.
    pub fn file(self, path: &Path) -> Self {
        Self { figment: self.figment.merge(Toml::file_exact(path)) }
    }

    /// Adds variables such as `AIRLOCK_HANDLER__HTTP_LISTEN` for `handler.http_listen`; ignores those of others.
    pub fn environment(self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        Self { figment: self.figment.merge(Environment::new(variables)) }
    }

    /// Adds one value, such as `handler.http_listen`, that was given with a flag of this name.
    pub fn flag(self, flag: &str, key: &str, value: impl Serialize) -> Self {
        let value = Named { name: format!("flag `{flag}`"), value: Serialized::default(key, value) };
        Self { figment: self.figment.merge(value) }
    }

    /// The settings; an error names the key, what is wrong with it, and where it was set.
    pub fn load<T: DeserializeOwned>(&self) -> Result<T, Error> {
        self.figment.extract().map_err(|error| {
            let lines: Vec<_> = error.into_iter().map(|error| self.explain(&error)).collect();
            Error::Setting(lines.join("\n"))
        })
    }

    fn explain(&self, error: &figment::Error) -> String {
        let mut path = error.path.clone();
        if let Kind::UnknownField(name, _) = &error.kind {
            // The path ends at the table of an unknown key, or at the key, depending on how serde met it.
            if path.last() != Some(name) {
                path.push(name.clone());
            }
        }
        let key = path.join(".");
        let found = self.figment.find_metadata(&key).or(error.metadata.as_ref());
        let place = found.map(|metadata| place(metadata, &path)).unwrap_or_default();
        match &error.kind {
            Kind::UnknownField(_, known) => {
                format!("setting `{key}`{place} is unknown; known here are {}", known.join(", "))
            }
            // Without a key it is the file as a whole: missing, unreadable, or no TOML.
            kind if key.is_empty() => format!("settings{place} cannot be read: {kind}"),
            kind => format!("setting `{key}`{place} not valid: {kind}"),
        }
    }
}

fn place(metadata: &Metadata, path: &[String]) -> String {
    match &metadata.source {
        Some(Source::File(file)) => format!(" in `{}`", file.display()),
        _ if metadata.name == environment::NAME => format!(" from the variable `{}`", environment::variable(path)),
        _ => format!(" from the {}", metadata.name),
    }
}

/// A provider under the name that its user knows it by.
struct Named<T> {
    name: String,
    value: Serialized<T>,
}

impl<T: Serialize> figment::Provider for Named<T> {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.name.clone())
    }

    fn data(&self) -> figment::Result<figment::value::Map<figment::Profile, figment::value::Dict>> {
        self.value.data()
    }
}
