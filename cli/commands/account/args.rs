//! The arguments of `airlock account …`.

use clap::{Args as ClapArgs, Subcommand};
use types::{ClientId, ComponentId, Scope, ServiceName, Username};

use crate::{
    terminal::{Confirmation, PasswordSource},
    values::completion,
};

#[derive(Debug, Subcommand)]
pub(crate) enum Account {
    #[command(flatten)]
    Manage(Manage),
    /// Show what owners use of the budgets of the server that runs on this data directory
    #[command(
        after_help = "Without a user, owners are listed who use something, the nearest to its share first. Services in \
                      several processes have a budget each.\n\nExamples:\n  airlock account usage\n  airlock account \
                      usage bob --output json"
    )]
    Usage {
        /// Username
        #[arg(add = completion::users())]
        username: Option<Username>,
    },
}

/// Commands on the server's store, which work whether it runs or not.
#[derive(Debug, Subcommand)]
pub(crate) enum Manage {
    /// Manage users: list, create, disable, reset passwords
    #[command(visible_alias = "user")]
    Users {
        #[command(subcommand)]
        command: Users,
    },
    /// Manage OAuth clients: register your own, approve or reject those of users
    #[command(visible_alias = "client")]
    Clients {
        #[command(subcommand)]
        command: Clients,
    },
    /// Manage network components: handlers, routers and brokers
    #[command(visible_alias = "component")]
    Components {
        #[command(subcommand)]
        command: Components,
    },
    /// Manage the keys that sign tokens
    #[command(visible_alias = "key")]
    Keys {
        #[command(subcommand)]
        command: Keys,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Users {
    /// List users, at most 500
    #[command(visible_alias = "ls")]
    #[command(after_help = "Example:\n  airlock account users list --output csv")]
    List {
        /// Start after this username
        #[arg(long, value_name = "NAME")]
        after: Option<Username>,
    },
    /// Show a user
    #[command(visible_alias = "get")]
    #[command(after_help = "Example:\n  airlock account users show bob")]
    Show {
        /// Username
        #[arg(add = completion::users())]
        username: Username,
    },
    /// Create a user with a confirmed e-mail address; prompts for a password
    #[command(after_help = "Example:\n  airlock account users create bob bob@example.com")]
    Create {
        /// Username
        username: Username,
        /// E-mail address
        email: String,
        #[command(flatten)]
        password: PasswordSource,
    },
    /// Disable a user at once: end all sessions, grants and tokens, and refuse the password
    #[command(after_help = "Example:\n  airlock account users disable bob")]
    Disable {
        /// Username
        #[arg(add = completion::users())]
        username: Username,
    },
    /// Enable a disabled user
    #[command(after_help = "Example:\n  airlock account users enable bob")]
    Enable {
        /// Username
        #[arg(add = completion::users())]
        username: Username,
    },
    /// Set a new password and end all sessions, grants and tokens; prompts for the password
    #[command(after_help = "Example:\n  airlock account users reset-password bob")]
    ResetPassword {
        /// Username
        #[arg(add = completion::users())]
        username: Username,
        #[command(flatten)]
        password: PasswordSource,
    },
    /// Confirm a user's e-mail address without sending a mail
    #[command(after_help = "Example:\n  airlock account users validate bob")]
    Validate {
        /// Username
        #[arg(add = completion::users())]
        username: Username,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Clients {
    /// Register a client of your own; prints its secret, which cannot be shown again
    #[command(visible_alias = "create")]
    #[command(
        after_help = "Example:\n  airlock account clients register my-dashboard --scope profile --scope apps \\\n      --redirect-uri https://dashboard.example.com/callback"
    )]
    Register(NewClient),
    /// List clients, at most 500
    #[command(visible_alias = "ls")]
    #[command(after_help = "Example:\n  airlock account clients list --undecided")]
    List {
        /// Only those that are neither approved nor rejected
        #[arg(long, conflicts_with = "after")]
        undecided: bool,
        /// Start after this id
        #[arg(long, value_name = "ID")]
        after: Option<ClientId>,
    },
    /// Approve a client
    #[command(after_help = "Example:\n  airlock account clients approve my-dashboard")]
    Approve {
        /// Id of the client
        #[arg(add = completion::clients())]
        client_id: ClientId,
    },
    /// Reject a client, with immediate effect
    #[command(after_help = "Example:\n  airlock account clients reject my-dashboard")]
    Reject {
        /// Id of the client
        #[arg(add = completion::clients())]
        client_id: ClientId,
    },
    /// Delete a client; its id cannot be used again
    #[command(visible_aliases = ["delete", "rm"])]
    #[command(after_help = "Example:\n  airlock account clients remove my-dashboard")]
    Remove {
        /// Id of the client
        #[arg(add = completion::clients())]
        client_id: ClientId,
        #[command(flatten)]
        confirmation: Confirmation,
    },
}

#[derive(Debug, ClapArgs)]
pub(crate) struct NewClient {
    /// Id of the client
    pub(crate) client_id: ClientId,
    /// Description that users see
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) description: String,
    /// Exact redirect URI; may be repeated
    #[arg(long, value_name = "URI")]
    pub(crate) redirect_uri: Vec<String>,
    /// Scope that it may request: profile, apps, gateways, components or clients; may be repeated
    #[arg(long, value_name = "SCOPE", required = true)]
    pub(crate) scope: Vec<Scope>,
    /// Allow the password grant; only for your own programs
    #[arg(long)]
    pub(crate) first_party: bool,
    /// Create a public client, which has no secret
    #[arg(long)]
    pub(crate) public: bool,
    /// Support a v2 client, which neither uses PKCE nor sends the redirect URI with the code
    #[arg(long)]
    pub(crate) legacy: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Components {
    /// Print a token for a component of your own, valid for 93 days; registers the component if necessary
    #[command(after_help = "Example:\n  airlock account components token broker my-broker > broker.token")]
    Token {
        /// Type: handler, router or broker
        service: ServiceName,
        /// Id of the component
        id: ComponentId,
    },
    /// Revoke all tokens of a component, for example after its machine was broken into; it then needs a new one
    #[command(after_help = "Example:\n  airlock account components revoke my-broker")]
    Revoke {
        /// Id of the component
        #[arg(add = completion::components())]
        id: ComponentId,
    },
    /// List components, at most 500
    #[command(visible_alias = "ls")]
    #[command(after_help = "Example:\n  airlock account components list")]
    List {
        /// Start after this id
        #[arg(long, value_name = "ID")]
        after: Option<ComponentId>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Keys {
    /// List the keys that verify tokens, in the order in which they start to sign
    #[command(visible_alias = "ls")]
    #[command(after_help = "Example:\n  airlock account keys list")]
    List,
    /// Generate a key that signs tokens from one hour from now; all tokens stay valid
    #[command(after_help = "Examples:\n  airlock account keys rotate\n  airlock account keys rotate --at-once")]
    Rotate {
        /// Use it immediately and delete all others, for when a key has leaked; all tokens become invalid
        #[arg(long)]
        at_once: bool,
        #[command(flatten)]
        confirmation: Confirmation,
    },
}
