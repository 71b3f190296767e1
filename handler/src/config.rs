//! What an operator may set about the handler.

use std::{num::NonZeroUsize, path::PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::ComponentId;

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
    /// in its process; without one it announces nothing.
    pub token_file: Option<PathBuf>,
    /// Applications whose functions are kept loaded; each takes up to 1 MiB of memory.
    pub loaded_max: NonZeroUsize,
}

/// The default of [`Settings::loaded_max`].
const LOADED_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1023);

impl Default for Settings {
    fn default() -> Self {
        #[expect(clippy::expect_used, reason = "the id is written here, and a test makes one")]
        let id = "handler".parse().expect("`handler` is an id");
        Self { id, description: "Airlock handler".to_owned(), token_file: None, loaded_max: LOADED_MAX }
    }
}
