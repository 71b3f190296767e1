//! The handler's settings.

use std::{collections::BTreeMap, num::NonZeroUsize, path::PathBuf};

use runtime::LimitOverrides;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::{AppId, ComponentId};

use crate::{
    access::RateLimits,
    registry::{
        application::VersionBounds,
        device::{Prefix, Usage},
    },
};

/// The settings of the handler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The component id that it announces.
    #[schemars(with = "String")]
    pub id: ComponentId,
    /// The description that it announces.
    pub description: String,
    /// The file with the component token for announcements. Needed only if the account service runs in another process:
    /// copy `handler.token` from its data directory. Defaults to `handler.token` in the handler's own data directory;
    /// without a token nothing is announced.
    pub token_file: Option<PathBuf>,
    /// The file with the certificate of the discovery service, in PEM. Needed only if that runs in another process with
    /// a certificate of its own: copy `ca.cert` from its data directory. Defaults to the handler's own certificate.
    pub discovery_certificate_file: Option<PathBuf>,
    /// The component ids of the network brokers of The Things Network v2 from which uplinks and join requests are taken.
    /// Empty by default, because every user of the account service may register a component.
    #[schemars(with = "Vec<String>")]
    #[serde(rename = "brokers")]
    pub network_brokers: Vec<ComponentId>,
    /// Bounds on loaded payload functions.
    pub loading: Loading,
    /// Bounds on the versions of its functions that each application keeps.
    #[serde(rename = "versions")]
    pub version_bounds: VersionBounds,
    /// Overrides of `sandbox.limits` for the functions of single applications, by application id.
    #[schemars(with = "BTreeMap<String, LimitOverrides>")]
    #[serde(rename = "limits")]
    pub sandbox_limits: BTreeMap<AppId, LimitOverrides>,
    /// Rates at which clients may call the API.
    #[serde(rename = "calls")]
    pub rate_limits: RateLimits,
    /// The device address prefixes of the network.
    pub prefixes: Vec<Prefix>,
}

/// Bounds on loaded payload functions. Others are loaded when a message needs them, from `sandbox.cache_dir` or
/// from their source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Loading {
    /// Maximum number of function sets. An application has one, and another while a share of its devices has others.
    pub sets_max: NonZeroUsize,
    /// Maximum memory of all sets together, in bytes. A median codec uses about 40 kB.
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
        // A block of the community network that anybody may use for a network of their own.
        #[expect(clippy::expect_used, reason = "the prefix is written here, and a test makes one")]
        let prefix = "26000000/20".parse().expect("26000000/20 is a prefix");
        Self {
            id,
            description: "Airlock handler".to_owned(),
            token_file: None,
            discovery_certificate_file: None,
            network_brokers: Vec::new(),
            loading: Loading::default(),
            version_bounds: VersionBounds::default(),
            sandbox_limits: BTreeMap::new(),
            rate_limits: RateLimits::default(),
            prefixes: vec![Prefix { prefix, usage: Usage::ALL.to_vec() }],
        }
    }
}
