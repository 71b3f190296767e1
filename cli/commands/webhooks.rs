//! `airlock webhooks …`: the webhooks of an application.

pub(crate) mod args;

use api::rest::handler::{DeadLetter, NewWebhook, Webhook};
use client::webhooks::WebhookClient;
use server::secret_file::read_secret;
use types::{AppId, WebhookId};

use self::args::{Set, Webhooks};
use super::yes_no;
use crate::{
    network::Network,
    terminal::{Confirmation, confirm, say, table},
};

pub(crate) async fn run(command: Webhooks, app_id: Option<AppId>, network: &Network) -> anyhow::Result<()> {
    let app_id = network.application(app_id)?;
    let credential = network.credential_for(&app_id).await?;
    let client = WebhookClient::connect(&network.announcement().await?, app_id.clone(), credential)?;
    match command {
        Webhooks::List => list(&client, &app_id).await,
        Webhooks::Set(webhook) => set(&client, *webhook).await,
        Webhooks::Delete { id, confirmation } => delete(&client, &id, confirmation).await,
        Webhooks::Failed { id } => failed(&client, &id).await,
        Webhooks::Resend { id, messages } => {
            let resent = client.resend(&id, messages).await?;
            say(format_args!("Sending {resent} messages again"))
        }
    }
}

async fn list(client: &WebhookClient, app_id: &AppId) -> anyhow::Result<()> {
    let webhooks = client.list().await?;
    if webhooks.is_empty() {
        return say(format_args!("Application {app_id} has no webhooks. Create one with `airlock webhooks set`"));
    }
    let row = |webhook: Webhook| {
        let events = if webhook.events.is_empty() { "all".to_owned() } else { webhook.events.join(", ") };
        let id = webhook.id.to_string();
        [id, webhook.url, events, webhook.header_names.join(", "), yes_no(webhook.is_signed)]
    };
    table(["ID", "URL", "Events", "Headers", "Signed"], webhooks.into_iter().map(row))
}

async fn set(client: &WebhookClient, set: Set) -> anyhow::Result<()> {
    let Set { id, url, events, headers, secret_file } = set;
    let secret = secret_file.as_deref().map(read_secret).transpose()?;
    let webhook = NewWebhook { url, events, headers: headers.into_iter().collect(), secret };
    client.set(&id, &webhook).await?;
    say(format_args!("Set webhook {id}"))
}

async fn delete(client: &WebhookClient, id: &WebhookId, confirmation: Confirmation) -> anyhow::Result<()> {
    confirm(format_args!("Delete webhook {id}, with what waits for it?"), confirmation)?;
    client.delete(id).await?;
    say(format_args!("Deleted webhook {id}"))
}

async fn failed(client: &WebhookClient, id: &WebhookId) -> anyhow::Result<()> {
    let list = client.dead_letters(id).await?;
    if list.dead_letters.is_empty() {
        return say(format_args!("Webhook {id} took everything"));
    }
    let shown = list.dead_letters.len();
    let row = |letter: DeadLetter| {
        let time = letter.time.to_short();
        [letter.id, letter.dev_id, letter.event, time, letter.attempts.to_string(), letter.reason]
    };
    table(["ID", "DevID", "Event", "Time", "Attempts", "Reason"], list.dead_letters.into_iter().map(row))?;
    if shown < list.total {
        say(format_args!("These are the oldest {shown} of {}", list.total))?;
    }
    Ok(())
}
