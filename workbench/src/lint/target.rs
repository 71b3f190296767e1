//! The networks for which a codec is judged: the functions that each calls, its engine, and what that engine lacks.
//!
//! The facts are from the networks' own sources and documentation. Where those are not public, as for Datacake and
//! Actility, nothing is judged that they do not say.

pub(crate) mod built_ins;
pub(crate) mod engine;

use runtime::{Dialect, Function};
use serde::Serialize;

use self::{built_ins::ES_NAMES, engine::Engine};

/// A network, in a version range where that matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// ChirpStack 4 up to 4.16: QuickJS, a sloppy script.
    #[serde(rename = "chirpstack-4.16")]
    ChirpStackScript,
    /// ChirpStack from 4.17: QuickJS, a strict module.
    #[serde(rename = "chirpstack-4.17")]
    ChirpStackModule,
    /// The Things Stack up to 3.34: goja.
    #[serde(rename = "things-stack-3.34")]
    ThingsStackBefore335,
    /// The Things Stack from 3.35: the same, for longer texts.
    ThingsStack,
    /// The Things Network 2: otto.
    TtnV2,
    /// ChirpStack 3: otto.
    #[serde(rename = "chirpstack-3")]
    ChirpStack3,
    /// Datacake.
    Datacake,
    /// Actility ThingPark.
    Actility,
}

/// A function that a network calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) function: Function,
    pub(crate) name: &'static str,
    pub(crate) dialect: Dialect,
}

const DECODE_UPLINK: Entry = Entry { function: Function::Decoder, name: "decodeUplink", dialect: Dialect::Ts013 };
const ENCODE_DOWNLINK: Entry = Entry { function: Function::Encoder, name: "encodeDownlink", dialect: Dialect::Ts013 };
const DECODE_DOWNLINK: Entry =
    Entry { function: Function::DecodeDownlink, name: "decodeDownlink", dialect: Dialect::Ts013 };
const NORMALIZE_UPLINK: Entry =
    Entry { function: Function::NormalizeUplink, name: "normalizeUplink", dialect: Dialect::Ts013 };
const DECODER: Entry = Entry { function: Function::Decoder, name: "Decoder", dialect: Dialect::V2 };
const CONVERTER: Entry = Entry { function: Function::Converter, name: "Converter", dialect: Dialect::V2 };
const VALIDATOR: Entry = Entry { function: Function::Validator, name: "Validator", dialect: Dialect::V2 };
const ENCODER: Entry = Entry { function: Function::Encoder, name: "Encoder", dialect: Dialect::V2 };
const DECODE: Entry = Entry { function: Function::Decoder, name: "Decode", dialect: Dialect::ChirpStack3 };
const ENCODE: Entry = Entry { function: Function::Encoder, name: "Encode", dialect: Dialect::ChirpStack3 };

/// All functions that any network calls.
pub(crate) const ENTRIES: [Entry; 10] = [
    DECODE_UPLINK,
    ENCODE_DOWNLINK,
    DECODE_DOWNLINK,
    NORMALIZE_UPLINK,
    DECODER,
    CONVERTER,
    VALIDATOR,
    ENCODER,
    DECODE,
    ENCODE,
];

/// The result that a decoder must return, besides what its examples state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Fields: an object, in TS013 as `data`.
    Fields,
    /// The same, decoded into types: no `NaN` in `data`, and lists of texts as `errors` and `warnings`.
    TypedFields,
    /// A list of objects with a `field` and a `value`.
    Measurements,
}

impl Target {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::ChirpStackScript,
        Self::ChirpStackModule,
        Self::ThingsStackBefore335,
        Self::ThingsStack,
        Self::TtnV2,
        Self::ChirpStack3,
        Self::Datacake,
        Self::Actility,
    ];

    /// The name in arguments and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ChirpStackScript => "chirpstack-4.16",
            Self::ChirpStackModule => "chirpstack-4.17",
            Self::ThingsStackBefore335 => "things-stack-3.34",
            Self::ThingsStack => "things-stack",
            Self::TtnV2 => "ttn-v2",
            Self::ChirpStack3 => "chirpstack-3",
            Self::Datacake => "datacake",
            Self::Actility => "actility",
        }
    }

    /// The target with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|target| target.name() == name)
    }

    /// Returns the name for people.
    pub const fn title(self) -> &'static str {
        match self {
            Self::ChirpStackScript => "ChirpStack 4 up to 4.16",
            Self::ChirpStackModule => "ChirpStack from 4.17",
            Self::ThingsStackBefore335 => "The Things Stack up to 3.34",
            Self::ThingsStack => "The Things Stack",
            Self::TtnV2 => "The Things Network 2",
            Self::ChirpStack3 => "ChirpStack 3",
            Self::Datacake => "Datacake",
            Self::Actility => "Actility ThingPark",
        }
    }

    pub(crate) const fn engine(self) -> Engine {
        match self {
            Self::ChirpStackScript | Self::ChirpStackModule => Engine::QuickJs,
            Self::ThingsStackBefore335 | Self::ThingsStack => Engine::Goja,
            Self::TtnV2 | Self::ChirpStack3 => Engine::Otto,
            Self::Datacake => Engine::Unknown,
            // Its documentation asks for ES5, and does not name the engine.
            Self::Actility => Engine::UnknownEs5,
        }
    }

    /// Returns true if the text is evaluated as a module, which is strict code.
    pub(crate) const fn is_module(self) -> bool {
        matches!(self, Self::ChirpStackModule)
    }

    /// The functions that it calls. Where there are two for one purpose, the first that is defined counts.
    pub(crate) const fn entries(self) -> &'static [Entry] {
        match self {
            Self::ChirpStackScript | Self::ChirpStackModule | Self::Actility => &[DECODE_UPLINK, ENCODE_DOWNLINK],
            Self::ThingsStackBefore335 | Self::ThingsStack => {
                &[DECODE_UPLINK, ENCODE_DOWNLINK, DECODE_DOWNLINK, NORMALIZE_UPLINK, DECODER, ENCODER]
            }
            Self::TtnV2 => &[DECODER, CONVERTER, VALIDATOR, ENCODER],
            Self::ChirpStack3 => &[DECODE, ENCODE],
            Self::Datacake => &[DECODER],
        }
    }

    /// The dialect of its functions, unless it has several.
    pub(crate) fn dialect(self) -> Option<Dialect> {
        let mut dialects = self.entries().iter().map(|entry| entry.dialect);
        let first = dialects.next();
        first.filter(|first| dialects.all(|dialect| dialect == *first))
    }

    /// The length of a text that it accepts, in characters.
    pub(crate) const fn chars_max(self) -> Option<usize> {
        match self {
            Self::ThingsStackBefore335 => Some(40_960),
            Self::ThingsStack => Some(65_536),
            _ => None,
        }
    }

    /// Globals that it has besides those of the language.
    pub(crate) const fn globals(self) -> &'static [&'static str] {
        match self {
            Self::ChirpStackScript => &["Buffer", "chirpstack_input"],
            Self::ChirpStackModule => &["Buffer", "chirpstack_input", "atob", "btoa"],
            Self::ThingsStackBefore335 | Self::ThingsStack => &[],
            Self::TtnV2 => &["console", "payload", "port", "fields"],
            Self::ChirpStack3 => &["console", "fPort", "bytes", "obj", "variables"],
            Self::Datacake => &["normalizedPayload"],
            Self::Actility => &["module", "exports"],
        }
    }

    /// Names that it imports before the text, as ES modules do: nothing can be assigned to them.
    pub(crate) const fn imports(self) -> &'static [&'static str] {
        match self {
            Self::ChirpStackModule => &["Buffer"],
            _ => &[],
        }
    }

    /// The modules that a text can import.
    pub(crate) const fn modules(self) -> &'static [&'static str] {
        match self {
            Self::ChirpStackModule => &["buffer", "base64-js", "ieee754"],
            _ => &[],
        }
    }

    /// Members of what it imports that have no setter. A function of the same name takes the place of the import, and the
    /// module adds them to its prototype.
    pub(crate) const fn getters(self) -> &'static [&'static str] {
        match self {
            Self::ChirpStackModule => &["offset", "parent", "buffer", "byteLength", "byteOffset", "length"],
            _ => &[],
        }
    }

    /// Returns the name that the network declares behind the text, in the same scope.
    pub(crate) const fn declares(self) -> Option<&'static str> {
        match self {
            Self::ThingsStackBefore335 | Self::ThingsStack => Some("main"),
            _ => None,
        }
    }

    /// Globals that only later versions have, with the first of them.
    pub(crate) const fn newer_globals(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::ChirpStackModule => &[("atob", "ChirpStack 4.20"), ("btoa", "ChirpStack 4.20")],
            _ => &[],
        }
    }

    /// Returns true if a global exists; `None` if that is not known.
    pub(crate) fn has_global(self, name: &str) -> Option<bool> {
        if self.globals().contains(&name) {
            return Some(true);
        }
        let is_of_language = ES_NAMES.contains(&name);
        match self.engine() {
            engine if !engine.is_known() => is_of_language.then_some(true),
            engine => Some(is_of_language && !engine.lacks().contains(&name)),
        }
    }

    pub(crate) const fn shape(self) -> Shape {
        match self {
            Self::Datacake => Shape::Measurements,
            Self::ThingsStackBefore335 | Self::ThingsStack => Shape::TypedFields,
            _ => Shape::Fields,
        }
    }

    /// Returns true if the engine enforces the rules of strict code.
    pub(crate) fn enforces_strict(self) -> bool {
        matches!(self.engine(), Engine::QuickJs | Engine::Goja)
    }
}
