//! The arguments of `airlock gateways …`.

use clap::{Args as ClapArgs, Subcommand};
use types::{ComponentId, GatewayId, GatewayRight, Username};

use crate::{
    terminal::Confirmation,
    values::{completion, location::Location},
};

#[derive(Debug, Subcommand)]
pub(crate) enum Gateways {
    /// Register a gateway
    #[command(visible_alias = "create")]
    #[command(after_help = "Example:\n  airlock gateways register my-gateway EU_863_870 52.37,4.89")]
    Register {
        /// Id of the gateway
        gateway_id: GatewayId,
        /// Frequency plan, such as EU_863_870
        frequency_plan: String,
        /// Location of the antenna, in degrees and metres
        #[arg(value_name = "LAT,LONG[,ALT]", allow_hyphen_values = true)]
        location: Option<Location>,
    },
    /// List your gateways
    #[command(visible_alias = "ls")]
    #[command(after_help = "Example:\n  airlock gateways list")]
    List,
    /// Show a gateway
    #[command(visible_alias = "get")]
    #[command(after_help = "Example:\n  airlock gateways info my-gateway")]
    Info {
        /// Id of the gateway
        #[arg(add = completion::gateways())]
        gateway_id: GatewayId,
    },
    /// Update a gateway; only the given options change
    #[command(visible_alias = "update")]
    #[command(
        after_help = "Example:\n  airlock gateways edit my-gateway --description \"On the roof\" --status-public"
    )]
    Edit {
        /// Id of the gateway
        #[arg(add = completion::gateways())]
        gateway_id: GatewayId,
        #[command(flatten)]
        change: Box<GatewayChange>,
    },
    /// Delete a gateway for all of its collaborators; its id cannot be used again
    #[command(after_help = "Example:\n  airlock gateways delete my-gateway")]
    Delete {
        /// Id of the gateway
        #[arg(add = completion::gateways())]
        gateway_id: GatewayId,
        #[command(flatten)]
        confirmation: Confirmation,
    },
    /// Manage the collaborators of a gateway
    #[command(visible_alias = "collaborator")]
    Collaborators {
        #[command(subcommand)]
        command: GatewayCollaborators,
    },
}

#[derive(Clone, Debug, Default, ClapArgs)]
pub(crate) struct GatewayChange {
    /// Description
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    /// Brand
    #[arg(long, value_name = "TEXT")]
    pub(crate) brand: Option<String>,
    /// Model
    #[arg(long, value_name = "TEXT")]
    pub(crate) model: Option<String>,
    /// Type of the antenna
    #[arg(long, value_name = "TEXT")]
    pub(crate) antenna_type: Option<String>,
    /// Model of the antenna
    #[arg(long, value_name = "TEXT")]
    pub(crate) antenna_model: Option<String>,
    /// Frequency plan, such as EU_863_870
    #[arg(long, value_name = "ID")]
    pub(crate) frequency_plan: Option<String>,
    /// Location of the antenna, in degrees and metres
    #[arg(long, value_name = "LAT,LONG[,ALT]", allow_hyphen_values = true)]
    pub(crate) location: Option<Location>,
    /// Show its exact location to everybody
    #[arg(long, conflicts_with = "location_private")]
    pub(crate) location_public: bool,
    /// Show its exact location to collaborators only
    #[arg(long)]
    pub(crate) location_private: bool,
    /// Show its status to everybody
    #[arg(long, conflicts_with = "status_private")]
    pub(crate) status_public: bool,
    /// Show its status to collaborators only
    #[arg(long)]
    pub(crate) status_private: bool,
    /// Show its owner to everybody
    #[arg(long, conflicts_with = "owner_private")]
    pub(crate) owner_public: bool,
    /// Show its owner to collaborators only
    #[arg(long)]
    pub(crate) owner_private: bool,
    /// Username of its owner
    #[arg(long, value_name = "NAME")]
    pub(crate) owner: Option<Username>,
    /// Router that it connects to
    #[arg(long, value_name = "ID")]
    pub(crate) router: Option<ComponentId>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GatewayCollaborators {
    /// Add a collaborator, or replace the rights of one
    #[command(visible_aliases = ["create", "set", "update"])]
    #[command(after_help = "Example:\n  airlock gateways collaborators add my-gateway bob gateway:status")]
    Add {
        /// Gateway
        #[arg(add = completion::gateways())]
        gateway_id: GatewayId,
        /// User
        username: Username,
        /// Rights: gateway:settings, gateway:delete, gateway:collaborators, gateway:status, gateway:location,
        /// gateway:owner, gateway:messages [default: all of yours]
        rights: Vec<GatewayRight>,
    },
    /// Remove a collaborator
    #[command(visible_alias = "remove")]
    #[command(after_help = "Example:\n  airlock gateways collaborators delete my-gateway bob")]
    Delete {
        /// Gateway
        #[arg(add = completion::gateways())]
        gateway_id: GatewayId,
        /// User
        username: Username,
    },
}
