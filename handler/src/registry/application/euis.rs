//! The EUIs of a device, which identify it in join requests.

use std::fmt;

use serde::{Deserialize, Serialize};
use types::{AppEui, DevEui};

/// The EUIs of a device; the DevEUI of a template is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Euis {
    pub(crate) app_eui: AppEui,
    pub(crate) dev_eui: DevEui,
}

/// The form used in store keys.
impl fmt::Display for Euis {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}", self.app_eui, self.dev_eui)
    }
}
