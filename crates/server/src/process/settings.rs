//! Settings from defaults, a file, environment variables and flags; later ones win.

mod print;

use std::{collections::BTreeSet, path::Path};

use figment::{
    Figment, Metadata, Source,
    error::Kind,
    providers::{Data, Format, Serialized},
    value::{Dict, Value},
};
use serde::{Serialize, de::DeserializeOwned};

use crate::Error;

pub use self::print::print;

/// The prefix of environment variables.
const ENVIRONMENT_PREFIX: &str = "AIRLOCK_";
/// Separates a table from its key in a variable: single underscores are part of names.
const SEPARATOR: &str = "__";

/// The sources of settings; later ones win, value by value.
///
/// Defaults come from the `Default` of the settings: give their structs `#[serde(default, deny_unknown_fields)]`.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    figment: Figment,
    /// The keys of variables and flags.
    named: BTreeSet<String>,
}

impl Layers {
    /// Returns layers with the defaults alone.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a TOML file; `load` fails when it cannot be read.
    pub fn file(self, path: &Path) -> Self {
        Self { figment: self.figment.merge(Toml::file_exact(path)), ..self }
    }

    /// Adds a TOML file in which a table may be written as the list of one of its members alone, so that `[[table]]`
    /// stands for `[[table.member]]`. Other layers can still set the table's other members.
    pub fn file_with_list(self, path: &Path, table: &'static str, member: &'static str) -> Self {
        Self { figment: self.figment.merge(WithList { file: Toml::file_exact(path), table, member }), ..self }
    }

    /// Adds variables such as `AIRLOCK_HANDLER__ID` for `handler.id`; ignores those without our prefix.
    ///
    /// An empty variable counts as absent, because some callers cannot unset one. Numbers, booleans and `[arrays]` are
    /// recognized; quote a string that looks like one of them.
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

    /// Adds the value of a flag for a key such as `handler.id`.
    pub fn flag(self, flag: &str, key: &str, value: impl Serialize) -> Self {
        self.one(format!("flag `{flag}`"), key, value)
    }

    /// Returns true if a variable or a flag sets a key such as `handler.id`, even to its default.
    pub fn is_named(&self, key: &str) -> bool {
        self.named.contains(key)
    }

    /// Loads the settings; an error names the key, the problem, and where the value was set.
    pub fn load<T: DeserializeOwned>(&self) -> Result<T, Error> {
        self.figment.extract().map_err(|error| {
            let would_be_valid = |layers: Self| layers.figment.extract::<T>().is_ok();
            let lines: Vec<_> = error.into_iter().map(|error| self.explain(&error, would_be_valid)).collect();
            Error::Setting(lines.join("\n"))
        })
    }

    /// The error about a value that was loaded and breaks a rule, such as `must be a URL`.
    pub fn invalid(&self, key: &str, rule: &str) -> Error {
        let source = self.figment.find_metadata(key).map(source).unwrap_or_default();
        Error::Setting(format!("setting `{key}`{source} not valid: {rule}"))
    }

    fn one(mut self, source: String, key: &str, value: impl Serialize) -> Self {
        self.named.insert(key.to_owned());
        Self {
            figment: self.figment.merge(NamedValue { name: source, value: Serialized::default(key, value) }),
            ..self
        }
    }

    fn explain(&self, error: &figment::Error, would_be_valid: impl Fn(Self) -> bool) -> String {
        let mut path = error.path.clone();
        if let Kind::UnknownField(name, _) = &error.kind {
            // The path of an unknown key ends with its table or with the key, depending on the deserializer.
            if path.last() != Some(name) {
                path.push(name.clone());
            }
        }
        let key = path.join(".");
        let found = self.figment.find_metadata(&key).or(error.metadata.as_ref());
        let source = found.map(source).unwrap_or_default();
        match &error.kind {
            Kind::UnknownField(_, known) => {
                // Some tables hold what others have a table of their own for, such as `listen.account`.
                let turned: Vec<_> = path.iter().rev().map(String::as_str).collect();
                let turned = turned.join(".");
                let value = self.figment.find_value(&key).ok();
                let meant = value.filter(|value| would_be_valid(Self::new().flag("", &turned, value)));
                let hint = meant.map(|_| format!("did you mean `{turned}`?"));
                let hint = hint.unwrap_or_else(|| format!("known here are {}", known.join(", ")));
                format!("setting `{key}`{source} is unknown; {hint}")
            }
            // Without a key it is the whole file: missing, unreadable, or not TOML.
            kind if key.is_empty() => format!("settings{source} cannot be read: {}", kind.to_string().trim_end()),
            // The value is not repeated: it may be a secret.
            Kind::InvalidType(_, expected) | Kind::InvalidValue(_, expected) => {
                format!("setting `{key}`{source} not valid: must be {}", describe(expected))
            }
            Kind::UnknownVariant(_, known) => {
                format!("setting `{key}`{source} not valid: must be one of {}", known.join(", "))
            }
            Kind::MissingField(name) => format!("setting `{key}.{name}` is missing: `{key}`{source} needs it"),
            kind => {
                let text = kind.to_string();
                // Some types name themselves.
                let rule = text.strip_prefix(&format!("setting `{key}` not valid: ")).unwrap_or(&text);
                format!("setting `{key}`{source} not valid: {rule}")
            }
        }
    }
}

fn source(metadata: &Metadata) -> String {
    match &metadata.source {
        Some(Source::File(file)) => format!(" in `{}`", file.display()),
        _ => format!(" from the {}", metadata.name),
    }
}

/// Describes a type that serde expects, for people who do not write Rust.
fn describe(expected: &str) -> &str {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, zero or more, that is not too large",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number that is not too large",
        "f32" | "f64" => "a number",
        "a sequence" => "a list",
        "a map" => "a table",
        "a boolean" => "true or false",
        "path string" => "a path",
        // The names of types mean nothing to an operator.
        other if other.starts_with("struct ") => "a table",
        other if other.starts_with("enum ") => "a string",
        other => other,
    }
}

/// TOML for figment, whose own support brings an older parser that takes long to compile.
struct Toml;

impl Format for Toml {
    type Error = toml::de::Error;

    const NAME: &'static str = "TOML";

    fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, toml::de::Error> {
        toml::from_str(text)
    }
}

/// A file in which the list of a table's member may stand for the table.
struct WithList {
    file: Data<Toml>,
    table: &'static str,
    member: &'static str,
}

impl figment::Provider for WithList {
    fn metadata(&self) -> Metadata {
        self.file.metadata()
    }

    fn data(&self) -> figment::Result<figment::value::Map<figment::Profile, Dict>> {
        let mut data = self.file.data()?;
        for settings in data.values_mut() {
            if let Some(table) = settings.get_mut(self.table)
                && matches!(table, Value::Array(..))
            {
                *table = Dict::from([(self.member.to_owned(), table.clone())]).into();
            }
        }
        Ok(data)
    }
}

/// A value with the name of its variable or flag.
struct NamedValue<T> {
    name: String,
    value: Serialized<T>,
}

impl<T: Serialize> figment::Provider for NamedValue<T> {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.name.clone())
    }

    fn data(&self) -> figment::Result<figment::value::Map<figment::Profile, Dict>> {
        self.value.data()
    }
}
