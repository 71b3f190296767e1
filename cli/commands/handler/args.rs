//! The arguments of `airlock handler …`.

use clap::Subcommand;
use types::{AppEui, DevEui};

use crate::terminal::Confirmation;

#[derive(Debug, Subcommand)]
pub(crate) enum Handler {
    /// Show or release the device that has a pair of AppEUI and DevEUI
    Euis {
        #[command(subcommand)]
        command: Euis,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Euis {
    /// Show the application and device that have the pair, which only operators may know
    #[command(visible_alias = "get")]
    #[command(after_help = "Example:\n  airlock handler euis show 70B3D57ED0000001 0004A30B001C0530")]
    Show {
        /// Application EUI
        app_eui: AppEui,
        /// Device EUI
        dev_eui: DevEui,
    },
    /// Delete the device that has the pair, for example because its application does not own it
    #[command(visible_aliases = ["delete", "rm"])]
    #[command(after_help = "Example:\n  airlock handler euis release 70B3D57ED0000001 0004A30B001C0530")]
    Release {
        /// Application EUI
        app_eui: AppEui,
        /// Device EUI
        dev_eui: DevEui,
        #[command(flatten)]
        confirmation: Confirmation,
    },
}
