//! `airlock gateways …`: the arguments.

use clap::{Args as ClapArgs, Subcommand};
use types::{ComponentId, GatewayId, GatewayRight, Username};

use crate::commands::{applications::args::Sure, location::Location};

/// `airlock gateways …`.
#[derive(Debug, Subcommand)]
pub enum Gateways {
    /// Register a gateway
    Register {
        /// Id of the gateway
        gateway_id: GatewayId,
        /// Frequency plan, such as EU_863_870
        frequency_plan: String,
        /// Where its antenna is: degrees, and metres above the sea
        #[arg(value_name = "LAT,LONG[,ALT]", allow_hyphen_values = true)]
        location: Option<Location>,
    },
    /// List your gateways
    #[command(visible_alias = "ls")]
    List,
    /// Show a gateway
    Info {
        /// Id of the gateway
        gateway_id: GatewayId,
    },
    /// Change a gateway; what is not named stays
    Edit {
        /// Id of the gateway
        gateway_id: GatewayId,
        /// What to change
        #[command(flatten)]
        change: Box<GatewayChange>,
    },
    /// Delete a gateway for everybody; its id stays taken
    Delete {
        /// Id of the gateway
        gateway_id: GatewayId,
        /// Without a question
        #[command(flatten)]
        sure: Sure,
    },
    /// Say who else may work with a gateway
    #[command(visible_alias = "collaborator")]
    Collaborators {
        /// What to do
        #[command(subcommand)]
        command: Collaborators,
    },
}

/// What `airlock gateways edit` changes.
#[derive(Clone, Debug, Default, ClapArgs)]
pub struct GatewayChange {
    /// What people call it
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
    /// Who makes it
    #[arg(long, value_name = "TEXT")]
    pub brand: Option<String>,
    /// Which of theirs it is
    #[arg(long, value_name = "TEXT")]
    pub model: Option<String>,
    /// Type of the antenna
    #[arg(long, value_name = "TEXT")]
    pub antenna_type: Option<String>,
    /// Model of the antenna
    #[arg(long, value_name = "TEXT")]
    pub antenna_model: Option<String>,
    /// Frequency plan, such as EU_863_870
    #[arg(long, value_name = "ID")]
    pub frequency_plan: Option<String>,
    /// Where its antenna is: degrees, and metres above the sea
    #[arg(long, value_name = "LAT,LONG[,ALT]", allow_hyphen_values = true)]
    pub location: Option<Location>,
    /// Everybody may know where exactly it is
    #[arg(long, conflicts_with = "location_private")]
    pub location_public: bool,
    /// Nobody without the right may
    #[arg(long)]
    pub location_private: bool,
    /// Everybody may know how it is doing
    #[arg(long, conflicts_with = "status_private")]
    pub status_public: bool,
    /// Nobody without the right may
    #[arg(long)]
    pub status_private: bool,
    /// Everybody may know whose it is
    #[arg(long, conflicts_with = "owner_private")]
    pub owner_public: bool,
    /// Nobody without the right may
    #[arg(long)]
    pub owner_private: bool,
    /// Who is to own it
    #[arg(long, value_name = "NAME")]
    pub owner: Option<Username>,
    /// Router that it talks to
    #[arg(long, value_name = "ID")]
    pub router: Option<ComponentId>,
}

/// `airlock gateways collaborators …`.
#[derive(Debug, Subcommand)]
pub enum Collaborators {
    /// Give a user rights, in place of those they have
    Add {
        /// Gateway
        gateway_id: GatewayId,
        /// User
        username: Username,
        /// Rights: gateway:settings, gateway:delete, gateway:collaborators, gateway:status, gateway:location,
        /// gateway:owner, gateway:messages [default: yours]
        rights: Vec<GatewayRight>,
    },
    /// Take every right from a user
    #[command(visible_alias = "remove")]
    Delete {
        /// Gateway
        gateway_id: GatewayId,
        /// User
        username: Username,
    },
}
