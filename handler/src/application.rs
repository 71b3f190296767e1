//! Applications: their settings, their payload functions, and where these are stored.

mod applications;
mod comparison;
mod deletion;
pub(crate) mod eui_holder;
pub(crate) mod euis;
mod model;
mod record;
pub(crate) mod store_keys;
mod version;
mod version_list;
mod versions;

pub(crate) use self::model::{Conversion, SentApplication};
pub use self::{
    applications::{Applications, JoinKeyChange},
    model::{Application, ApplicationSummary},
    version::{FunctionsVersion, StoredVersion, VersionBounds, VersionLabel, VersionOrigin},
};
