//! An application, and the summary of it that uplinks need.

use runtime::{Dialect, Sources, SourcesHash};
use serde::{Deserialize, Serialize};
use types::{AccessKey, AppId, DevId, SilentAfter};

use super::candidate::Candidate;
use crate::Error;

const FORMAT_BYTES_MAX: usize = 64;

/// An application as the handler stores it: its [`ApplicationSummary`] and the sources of its payload functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Application {
    summary: ApplicationSummary,
    sources: Sources,
}

/// An application as a client sent it. Its sources may be long, and are hashed only for a client that may set or run
/// them.
#[derive(Clone, Debug)]
pub(crate) struct SentApplication {
    pub(crate) app_id: AppId,
    pub(crate) payload_format: String,
    pub(crate) sources: Sources,
    pub(crate) register_on_join_access_key: Option<AccessKey>,
}

/// An application without the sources of its functions. Every uplink reads it, so it is short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplicationSummary {
    /// Its id.
    pub app_id: AppId,
    /// The payload format as it was set; see `conversion`.
    pub payload_format: String,
    /// True if uplinks run a function: a decoder, a converter or a validator.
    pub has_uplink_function: bool,
    /// Identifies the sources, so that loaded functions are found without reading these.
    pub functions_hash: SourcesHash,
    /// The number of the version of these functions, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// Other functions that a share of the devices has, if there are such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<Candidate>,
    /// True if these functions are those of the candidate, which only some devices have. Never true in the store.
    #[serde(skip)]
    pub is_candidate: bool,
    /// The time without an uplink after which its devices count as silent; none for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent_after: Option<SilentAfter>,
    /// The access key that registers devices when they join; absent from what an uplink reads. The account service
    /// decides what it may do.
    pub register_on_join_access_key: Option<AccessKey>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conversion {
    /// By the application's own functions, in the dialect that its payload format names, if any.
    Custom(Option<Dialect>),
    CayenneLpp,
    None,
}

impl SentApplication {
    /// The same application, with its sources hashed.
    pub(crate) fn into_application(self) -> Application {
        let Self { app_id, payload_format, sources, register_on_join_access_key } = self;
        Application::with_functions(app_id, payload_format, sources).with_join_key(register_on_join_access_key)
    }
}

impl Application {
    /// An application that is registered but not set up.
    pub fn new(app_id: AppId) -> Self {
        Self::with_functions(app_id, String::new(), Sources::default())
    }

    /// An application with these functions. The payload format chooses their dialect; they are hashed here, once.
    pub fn with_functions(app_id: AppId, payload_format: String, sources: Sources) -> Self {
        let sources = Sources { dialect: Conversion::of(&payload_format).dialect(), ..sources };
        let Sources { decoder, converter, validator, .. } = &sources;
        let summary = ApplicationSummary {
            app_id,
            payload_format,
            has_uplink_function: [decoder, converter, validator].iter().any(|source| !source.is_empty()),
            functions_hash: sources.hash(),
            version: None,
            candidate: None,
            is_candidate: false,
            silent_after: None,
            register_on_join_access_key: None,
        };
        Self { summary, sources }
    }

    /// The application of these two parts, which were stored together.
    pub(super) fn from_parts(summary: ApplicationSummary, sources: Sources) -> Self {
        let sources = Sources { dialect: summary.conversion().dialect(), ..sources };
        Self { summary, sources }
    }

    /// The same application with this access key for devices that register when they join.
    pub fn with_join_key(mut self, key: Option<AccessKey>) -> Self {
        self.summary.register_on_join_access_key = key;
        self
    }

    /// The same application, whose functions are this version.
    pub fn with_version(mut self, version: Option<u32>) -> Self {
        self.summary.version = version;
        self
    }

    /// The same application, whose functions only a share of the devices is to have.
    pub(crate) fn for_share(mut self) -> Self {
        self.summary.is_candidate = true;
        self
    }

    /// The same application with what its stored summary has beside its functions and its access key.
    pub(super) fn with_rest_of(mut self, stored: &ApplicationSummary) -> Self {
        self.summary.candidate.clone_from(&stored.candidate);
        self.summary.silent_after = stored.silent_after;
        self
    }

    /// The application as it may be stored; [`Error::Invalid`] if its payload format is too long.
    pub(super) fn checked(self) -> Result<Self, Error> {
        if self.summary.payload_format.len() > FORMAT_BYTES_MAX {
            return Err(Error::invalid("PayloadFormat", format_args!("at most {FORMAT_BYTES_MAX} bytes are allowed")));
        }
        Ok(if self.has_functions() { self.custom_by_default() } else { self })
    }

    /// The same application; an empty payload format becomes `custom`.
    pub(crate) fn custom_by_default(mut self) -> Self {
        if self.summary.payload_format.is_empty() {
            // Neither asks for a dialect, so the hash stays right.
            self.summary.payload_format = "custom".to_owned();
        }
        self
    }

    /// All but the sources of its functions.
    pub fn summary(&self) -> &ApplicationSummary {
        &self.summary
    }

    pub(crate) fn sources(&self) -> &Sources {
        &self.sources
    }

    pub(crate) fn has_functions(&self) -> bool {
        self.summary.has_uplink_function || !self.sources.encoder.is_empty()
    }

    pub(crate) fn into_parts(self) -> (ApplicationSummary, Sources) {
        (self.summary, self.sources)
    }
}

impl ApplicationSummary {
    /// Returns true if it has had functions or a payload format set: functions come with a format.
    pub(crate) fn is_set_up(&self) -> bool {
        self.has_uplink_function || !self.payload_format.is_empty()
    }

    /// Returns true if it has the same functions and the same payload format as another.
    pub(super) fn has_functions_of(&self, other: &Self) -> bool {
        self.functions_hash == other.functions_hash && self.payload_format == other.payload_format
    }

    /// The application as a device has it: with the functions of the candidate, if the device is in its share.
    pub(crate) fn for_device(self, dev_id: &DevId) -> Self {
        let Some(candidate) = &self.candidate else { return self };
        if !candidate.is_of(&self.app_id, dev_id) {
            return self;
        }
        let Candidate { version, functions_hash, payload_format, has_uplink_function, .. } = candidate.clone();
        let version = Some(version);
        Self { version, functions_hash, payload_format, has_uplink_function, is_candidate: true, ..self }
    }

    /// [`Error::CandidateExists`] if a share of the devices has other functions.
    pub(super) fn check_without_candidate(&self) -> Result<(), Error> {
        let Some(Candidate { version, trial, .. }) = &self.candidate else { return Ok(()) };
        let (app_id, share) = (self.app_id.clone(), trial.share.to_string());
        Err(Error::CandidateExists { app_id, version: *version, share })
    }

    pub(crate) fn conversion(&self) -> Conversion {
        Conversion::of(&self.payload_format)
    }
}

impl Conversion {
    /// Returns the conversion of a payload format; an unknown format converts nothing.
    fn of(payload_format: &str) -> Self {
        match payload_format {
            "custom" => Self::Custom(None),
            "cayennelpp" => Self::CayenneLpp,
            name => Dialect::from_name(name).map_or(Self::None, |dialect| Self::Custom(Some(dialect))),
        }
    }

    fn dialect(self) -> Option<Dialect> {
        match self {
            Self::Custom(dialect) => dialect,
            Self::CayenneLpp | Self::None => None,
        }
    }
}
