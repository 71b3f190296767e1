//! Applications: their settings, their payload functions, and where these are stored.

mod applications;
mod candidate;
mod deletion;
pub(crate) mod eui_holder;
pub(crate) mod euis;
mod model;
mod record;
mod silence;
pub(crate) mod store_keys;
mod version;
mod version_list;
mod versions;

pub use self::{
    applications::{Applications, JoinKeyChange},
    candidate::{Abandoned, Candidate, CandidateState, Counts, Percentage, Tally, Trial},
    model::{Application, ApplicationSummary},
    version::{
        Abandonment, FunctionsVersion, ListedVersion, StoredVersion, VersionBounds, VersionLabel, VersionOrigin,
        VersionUse,
    },
};
pub(crate) use self::{
    model::{Conversion, SentApplication},
    silence::WatchedApplication,
};
