//! The arguments of `airlock webhooks …`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};
use types::{Secret, WebhookId};

use crate::{terminal::Confirmation, values::completion};

#[derive(Debug, Subcommand)]
pub(crate) enum Webhooks {
    /// List the webhooks
    #[command(visible_alias = "ls")]
    #[command(after_help = "Example:\n  airlock webhooks list")]
    List,
    /// Create a webhook, or replace one with its headers and its secret
    #[command(visible_alias = "create")]
    #[command(
        after_help = "Examples:\n  airlock webhooks set my-hook 'https://example.com/{dev_id}' --event up\n  airlock webhooks set my-hook https://example.com --header-file headers.txt"
    )]
    Set(Box<Set>),
    /// Change a webhook; what is left out stays, also its headers and its secret
    #[command(
        after_help = "Examples:\n  airlock webhooks update my-hook --event up --event down/acks\n  airlock webhooks update my-hook 'https://example.com/new/{dev_id}' --header-remove X-Region"
    )]
    Update(Box<Update>),
    /// Delete a webhook, with what waits for it
    #[command(after_help = "Example:\n  airlock webhooks delete my-hook")]
    Delete {
        /// Id of the webhook
        #[arg(add = completion::webhooks())]
        id: WebhookId,
        #[command(flatten)]
        confirmation: Confirmation,
    },
    /// List the latest messages that a webhook took, or that were given up
    #[command(after_help = "Example:\n  airlock webhooks deliveries my-hook --output csv")]
    Deliveries {
        /// Id of the webhook
        #[arg(add = completion::webhooks())]
        id: WebhookId,
    },
    /// List messages that a webhook did not take
    #[command(after_help = "Example:\n  airlock webhooks failed my-hook --output jsonl")]
    Failed {
        /// Id of the webhook
        #[arg(add = completion::webhooks())]
        id: WebhookId,
    },
    /// Send messages again that a webhook did not take
    #[command(after_help = "Example:\n  airlock webhooks resend my-hook")]
    Resend {
        /// Id of the webhook
        #[arg(add = completion::webhooks())]
        id: WebhookId,
        /// Ids of the messages [default: all]
        messages: Vec<String>,
    },
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Set {
    /// Id of the webhook
    #[arg(add = completion::webhooks())]
    pub(super) id: WebhookId,
    /// Where messages are sent; {app_id}, {dev_id} and {event} may stand after the host
    pub(super) url: String,
    /// Event that is sent, such as up; may be repeated [default: all]
    #[arg(long = "event", value_name = "EVENT")]
    pub(super) events: Vec<String>,
    /// Header of each request; may be repeated. Others on this machine can see it while the command runs
    #[arg(long = "header", value_name = "NAME: VALUE", value_parser = header)]
    pub(super) headers: Vec<(String, Secret)>,
    /// File with headers, one `NAME: VALUE` per line, or - for standard input
    #[arg(long, value_name = "FILE")]
    pub(super) header_file: Option<PathBuf>,
    /// File with the key that signs requests, as `echo whsec_$(openssl rand -base64 32)` prints it
    #[arg(long, value_name = "FILE")]
    pub(super) secret_file: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Update {
    /// Id of the webhook
    #[arg(add = completion::webhooks())]
    pub(super) id: WebhookId,
    /// Where messages are sent; on another scheme, host or port, each header must be set again or removed
    pub(super) url: Option<String>,
    /// Event that is sent, in place of those until now; may be repeated
    #[arg(long = "event", value_name = "EVENT", conflicts_with = "all_events")]
    pub(super) events: Vec<String>,
    /// Send all events
    #[arg(long)]
    pub(super) all_events: bool,
    /// Header to add or to replace; may be repeated. Others on this machine can see it while the command runs
    #[arg(long = "header", value_name = "NAME: VALUE", value_parser = header)]
    pub(super) headers: Vec<(String, Secret)>,
    /// File with headers to add or to replace, one `NAME: VALUE` per line, or - for standard input
    #[arg(long, value_name = "FILE")]
    pub(super) header_file: Option<PathBuf>,
    /// Name of a header to remove; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(super) header_remove: Vec<String>,
    /// File with the key that signs requests from now on
    #[arg(long, value_name = "FILE", conflicts_with = "secret_remove")]
    pub(super) secret_file: Option<PathBuf>,
    /// Stop signing requests
    #[arg(long)]
    pub(super) secret_remove: bool,
}

pub(super) fn header(text: &str) -> Result<(String, Secret), String> {
    let (name, value) = text.split_once(':').ok_or("a header has the form name: value")?;
    Ok((name.trim().to_owned(), Secret::new(value.trim())))
}
