//! What an operator may set about the handler.

use std::{collections::BTreeMap, num::NonZeroUsize, path::PathBuf};

use runtime::LimitsChange;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::{AppId, ComponentId};

use crate::{
    access::Calls,
    device::{Prefix, Usage},
};

/// How the handler presents itself, and how much it keeps ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The id with which it announces itself.
    #[schemars(with = "String")]
    pub id: ComponentId,
    /// What it says about itself in its announcement.
    pub description: String,
    /// File with the component token with which it announces itself, for a handler that runs without the account service
    /// in its process: copy `handler.token` from that service's data folder. The one in its own data folder unless set;
    /// without one it announces nothing.
    pub token_file: Option<PathBuf>,
    /// The brokers that may bring join requests, by the ids of their components; nobody unless set, since every user of
    /// the account service may register a component.
    #[schemars(with = "Vec<String>")]
    pub brokers: Vec<ComponentId>,
    /// How many payload functions are kept loaded.
    pub loading: Loading,
    /// By the id of an application: any of `sandbox.limits`, where they are to be others for its functions.
    #[schemars(with = "BTreeMap<String, LimitsChange>")]
    pub limits: BTreeMap<AppId, LimitsChange>,
    /// How often it may be called.
    pub calls: Calls,
    /// The device addresses that the network has.
    pub prefixes: Vec<Prefix>,
}

/// How many payload functions are kept loaded; what does not fit is read back from `sandbox.cache_dir`, or evaluated
/// again, when a message needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Loading {
    /// The most function sets; an application has one.
    pub sets_max: NonZeroUsize,
    /// The most memory that they take together, in bytes; a median codec takes about 40 kB.
    pub bytes_max: usize,
}

/// The default of [`Loading::sets_max`].
const SETS_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(65_535);

impl Default for Loading {
    fn default() -> Self {
        Self { sets_max: SETS_MAX, bytes_max: 1 << 30 }
    }
}

impl Default for Settings {
    fn default() -> Self {
        #[expect(clippy::expect_used, reason = "the id is written here, and a test makes one")]
        let id = "handler".parse().expect("`handler` is an id");
        // The community network's, whose addresses anybody may use for a network of their own.
        #[expect(clippy::expect_used, reason = "the prefix is written here, and a test makes one")]
        let prefix = "26000000/20".parse().expect("26000000/20 is a prefix");
        Self {
            id,
            description: "Airlock handler".to_owned(),
            token_file: None,
            brokers: Vec::new(),
            loading: Loading::default(),
            limits: BTreeMap::new(),
            calls: Calls::default(),
            prefixes: vec![Prefix { prefix, usage: Usage::ALL.to_vec() }],
        }
    }
}
