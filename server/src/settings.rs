//! Settings in layers: defaults, a file, environment variables, flags.

mod print;

use std::path::Path;

use figment::{
    Figment, Metadata, Source,
    error::Kind,
    providers::{Format, Serialized, Toml},
    value::Value,
};
use serde::{Serialize, de::DeserializeOwned};

use crate::Error;

pub use self::print::print;

/// The prefix of our environment variables.
pub const ENVIRONMENT_PREFIX: &str = "AIRLOCK_";
/// Separates a table from its key in a variable, because single underscores occur in names.
const SEPARATOR: &str = "__";

/// The sources of settings. Later ones override earlier ones, value by value.
///
/// Defaults come from the `Default` of the settings: give their structs `#[serde(default, deny_unknown_fields)]`.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    figment: Figment,
}

impl Layers {
    /// Defaults only.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a TOML file. If it cannot be read, loading fails.
    pub fn file(self, path: &Path) -> Self {
        Self { figment: self.figment.merge(Toml::file_exact(path)) }
    }

    /// Adds variables such as `AIRLOCK_HANDLER__ID` for `handler.id`, and ignores others.
    ///
    /// Empty variables are ignored, because not every caller can unset one. Numbers, booleans and `[arrays]` are
    /// recognised; a string that looks like one of them needs quotes.
    pub fn environment(mut self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        for (name, text) in variables {
            if let (Some(key), false) = (name.strip_prefix(ENVIRONMENT_PREFIX), text.is_empty()) {
                let key = key.to_ascii_lowercase().replace(SEPARATOR, ".");
                let value: Value = text.parse().unwrap_or_else(|never| match never {});
                self = self.one(format!("variable `{name}`"), &key, value);
            }
        }
        self
    }

    /// Adds one value, such as `handler.id`, given by a flag of this name.
    pub fn flag(self, flag: &str, key: &str, value: impl Serialize) -> Self {
        self.one(format!("flag `{flag}`"), key, value)
    }

    /// Loads the settings. An error names the key, the problem, and the source.
    pub fn load<T: DeserializeOwned>(&self) -> Result<T, Error> {
        self.figment.extract().map_err(|error| {
            let lines: Vec<_> = error.into_iter().map(|error| self.explain(&error)).collect();
            Error::Setting(lines.join("\n"))
        })
    }

    fn one(self, source: String, key: &str, value: impl Serialize) -> Self {
        Self { figment: self.figment.merge(Named { name: source, value: Serialized::default(key, value) }) }
    }

    fn explain(&self, error: &figment::Error) -> String {
        let mut path = error.path.clone();
        if let Kind::UnknownField(name, _) = &error.kind {
            // The path ends at the table of an unknown key, or at the key itself, depending on the deserialiser.
            if path.last() != Some(name) {
                path.push(name.clone());
            }
        }
        let key = path.join(".");
        let found = self.figment.find_metadata(&key).or(error.metadata.as_ref());
        let place = found.map(place).unwrap_or_default();
        match &error.kind {
            Kind::UnknownField(_, known) => {
                format!("setting `{key}`{place} is unknown; known here are {}", known.join(", "))
            }
            // Without a key it is about the whole file: missing, unreadable, or not TOML.
            kind if key.is_empty() => format!("settings{place} cannot be read: {kind}"),
            // Do not repeat the value: it may be a secret.
            Kind::InvalidType(_, expected) | Kind::InvalidValue(_, expected) => {
                format!("setting `{key}`{place} not valid: must be {}", in_words(expected))
            }
            kind => format!("setting `{key}`{place} not valid: {kind}"),
        }
    }
}

fn place(metadata: &Metadata) -> String {
    match &metadata.source {
        Some(Source::File(file)) => format!(" in `{}`", file.display()),
        _ => format!(" from the {}", metadata.name),
    }
}

/// What serde expects, for people who do not write Rust.
fn in_words(expected: &str) -> &str {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, zero or more, that is not too large",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number that is not too large",
        "f32" | "f64" => "a number",
        other => other,
    }
}

/// Gives a provider the name that users know it by.
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
