//! `airlock account …`: the arguments of what an operator does on the server's own store.

use clap::{Args as ClapArgs, Subcommand};
use types::{ClientId, ComponentId, Scope, ServiceName, Username};

use crate::commands::user::args::Password;

/// `airlock account …`.
#[derive(Debug, Subcommand)]
pub enum Account {
    /// Users: look, create, shut out, let in, help who forgot the password
    #[command(visible_alias = "user")]
    Users {
        /// What to do
        #[command(subcommand)]
        command: Users,
    },
    /// OAuth clients: register your own, decide about those of others
    #[command(visible_alias = "client")]
    Clients {
        /// What to do
        #[command(subcommand)]
        command: Clients,
    },
    /// Components of the network: handlers, routers and brokers
    #[command(visible_alias = "component")]
    Components {
        /// What to do
        #[command(subcommand)]
        command: Components,
    },
    /// The keys that sign tokens
    #[command(visible_alias = "key")]
    Keys {
        /// What to do
        #[command(subcommand)]
        command: Keys,
    },
}

/// `airlock account users …`.
#[derive(Debug, Subcommand)]
pub enum Users {
    /// List the users, 500 at most
    #[command(visible_alias = "ls")]
    List {
        /// Begin behind this name
        #[arg(long, value_name = "NAME")]
        after: Option<Username>,
    },
    /// Show a user
    Show {
        /// Name
        username: Username,
    },
    /// Create a user whose address counts as confirmed; asks for a password
    Create {
        /// Name to log in with
        username: Username,
        /// E-mail address
        email: String,
        /// Where the password comes from
        #[command(flatten)]
        password: Password,
    },
    /// Shut a user out at once: sessions, grants and tokens end, no password opens anything
    Disable {
        /// Name
        username: Username,
    },
    /// Let a user in again
    Enable {
        /// Name
        username: Username,
    },
    /// Give a user a new password, and end sessions, grants and tokens; asks for the password
    ResetPassword {
        /// Name
        username: Username,
        /// Where the password comes from
        #[command(flatten)]
        password: Password,
    },
    /// Confirm a user's address without a mail
    Validate {
        /// Name
        username: Username,
    },
}

/// `airlock account clients …`.
#[derive(Debug, Subcommand)]
pub enum Clients {
    /// Register a client of your own and print its secret, once
    Register(NewClient),
    /// List the clients, 500 at most
    #[command(visible_alias = "ls")]
    List {
        /// Only those that wait for a decision
        #[arg(long, conflicts_with = "after")]
        undecided: bool,
        /// Begin behind this id
        #[arg(long, value_name = "ID")]
        after: Option<ClientId>,
    },
    /// Let a client in
    Approve {
        /// Id of the client
        client_id: ClientId,
    },
    /// Keep a client out, at once
    Reject {
        /// Id of the client
        client_id: ClientId,
    },
    /// Delete a client; its id stays taken
    #[command(visible_alias = "rm")]
    Remove {
        /// Id of the client
        client_id: ClientId,
    },
}

/// `airlock account clients register`.
#[derive(Debug, ClapArgs)]
pub struct NewClient {
    /// Id of the client
    pub client_id: ClientId,
    /// What people are told about it
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub description: String,
    /// Where it may have users sent with a code, letter for letter; once for each address
    #[arg(long, value_name = "URI")]
    pub redirect_uri: Vec<String>,
    /// What it may ask for: profile, apps, gateways, components, clients; once for each
    #[arg(long, value_name = "SCOPE", required = true)]
    pub scope: Vec<Scope>,
    /// Let it log users in with their passwords: only for programs of your own
    #[arg(long)]
    pub first_party: bool,
    /// It has no secret, because it could not keep one
    #[arg(long)]
    pub public: bool,
    /// It is as old as v2: it sends no challenge and, with the code, no redirect URI
    #[arg(long)]
    pub legacy: bool,
}

/// `airlock account components …`.
#[derive(Debug, Subcommand)]
pub enum Components {
    /// Print a token of 93 days for a component of your own, which is registered when it is new
    Token {
        /// What it is: handler, router or broker
        service: ServiceName,
        /// Id of the component
        id: ComponentId,
    },
    /// List the components, 500 at most
    #[command(visible_alias = "ls")]
    List {
        /// Begin behind this id
        #[arg(long, value_name = "ID")]
        after: Option<ComponentId>,
    },
}

/// `airlock account keys …`.
#[derive(Debug, Subcommand)]
pub enum Keys {
    /// List the keys that verify tokens, in the order in which they begin to sign
    #[command(visible_alias = "ls")]
    List,
    /// Make a key that signs from in an hour on; every token stays valid
    Rotate {
        /// Use it at once and drop the others, because they leaked: every token becomes worthless
        #[arg(long)]
        at_once: bool,
    },
}
