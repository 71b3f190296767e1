//! `airlock webhooks …`: the webhooks of an application.

pub(crate) mod args;

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read},
    path::Path,
};

use anyhow::{Context, anyhow, ensure};
use api::rest::handler::{
    DeadLetter, NewWebhook, RecentDelivery, RecentDeliveryList, WaitingMessage, Webhook, WebhookChange,
};
use client::{handler::Page, webhooks::WebhookClient};
use server::secret_file::read_secret;
use types::{AppId, Change, Secret, WebhookId};

use self::args::{Set, Update, Webhooks, header};
use crate::{
    command_context::CommandContext,
    exit::CommandError,
    output::{Cell, Table},
    terminal::{Confirmation, confirm},
};

/// Maximum size of a file with headers: more than a webhook may have.
const HEADER_FILE_BYTES_MAX: u64 = 1 << 20;

pub(crate) async fn run(command: Webhooks, app_id: Option<AppId>, context: &CommandContext) -> anyhow::Result<()> {
    let app_id = context.application(app_id)?;
    let credential = context.credential_for(&app_id).await?;
    let client = WebhookClient::connect(&context.announcement().await?, app_id.clone(), credential)?;
    match command {
        Webhooks::List => list(context, &client, &app_id).await,
        Webhooks::Set(webhook) => set(context, &client, *webhook).await,
        Webhooks::Update(update) => {
            let (id, change) = change(*update)?;
            client.update(&id, &change).await?;
            context.output.message(format_args!("Updated webhook {id}"))
        }
        Webhooks::Delete { id, confirmation } => delete(context, &client, &id, confirmation).await,
        Webhooks::Deliveries { id } => deliveries(context, &client, &id).await,
        Webhooks::Failed { id } => failed(context, &client, &id).await,
        Webhooks::Resend { id, messages } => {
            let resent = client.resend(&id, messages).await?;
            context.output.message(format_args!("Sending {resent} messages again"))
        }
    }
}

async fn list(context: &CommandContext, client: &WebhookClient, app_id: &AppId) -> anyhow::Result<()> {
    let row = |webhook: Webhook| {
        let events = match webhook.events.is_empty() {
            true => Cell::new("all", webhook.events),
            false => Cell::list(&webhook.events, ", "),
        };
        let headers = Cell::list(&webhook.header_names, ", ");
        [webhook.id.to_string().into(), webhook.url.into(), events, headers, webhook.is_signed.into()]
    };
    let columns = [("id", "ID"), ("url", "URL"), ("events", "Events"), ("headers", "Headers"), ("signed", "Signed")];
    let webhooks = client.list().await?;
    let stopped: Vec<_> =
        webhooks.iter().filter_map(|webhook| Some((webhook.id.clone(), webhook.stopped.clone()?))).collect();
    let table = Table::new(columns, webhooks.into_iter().map(row));
    let hint = "Create one with `airlock webhooks set`";
    context.output.table(table, format_args!("Application {app_id} has no webhooks. {hint}"))?;
    for (id, reason) in stopped {
        context.output.message(format_args!("Webhook {id} is stopped: {reason}"))?;
    }
    Ok(())
}

async fn set(context: &CommandContext, client: &WebhookClient, set: Set) -> anyhow::Result<()> {
    let Set { id, url, events, mut headers, header_file, secret_file } = set;
    let secret = secret_file.as_deref().map(read_secret).transpose()?;
    headers.extend(read_headers(header_file.as_deref())?);
    let webhook = NewWebhook { url, events, headers: headers.into_iter().collect(), secret };
    client.set(&id, &webhook).await?;
    context.output.message(format_args!("Set webhook {id}"))
}

/// The change that the options make: what they leave out stays.
fn change(update: Update) -> anyhow::Result<(WebhookId, WebhookChange)> {
    let Update { id, url, events, all_events, headers, header_file, header_remove, secret_file, secret_remove } =
        update;
    let mut named: BTreeMap<_, _> = header_remove.into_iter().map(|name| (name, None)).collect();
    let set = headers.into_iter().chain(read_headers(header_file.as_deref())?);
    for (name, value) in set {
        let is_removed = named.iter().any(|(other, value)| value.is_none() && other.eq_ignore_ascii_case(&name));
        ensure!(!is_removed, CommandError::invalid(format!("header {name} cannot be both set and removed")));
        named.insert(name, Some(value));
    }
    let secret = secret_file.as_deref().map(read_secret).transpose()?;
    let change = WebhookChange {
        revision: None,
        url: url.map_or(Change::Keep, Change::Set),
        events: if all_events { Change::Remove } else { set_unless(Vec::is_empty, events) },
        headers: set_unless(BTreeMap::is_empty, named),
        secret: if secret_remove { Change::Remove } else { secret.map_or(Change::Keep, Change::Set) },
    };
    let is_empty =
        change.url.is_keep() && change.events.is_keep() && change.headers.is_keep() && change.secret.is_keep();
    ensure!(!is_empty, CommandError::invalid("nothing to change: see `airlock webhooks update --help`"));
    Ok((id, change))
}

fn set_unless<T>(is_empty: fn(&T) -> bool, value: T) -> Change<T> {
    if is_empty(&value) { Change::Keep } else { Change::Set(value) }
}

/// The headers in a file, if there is one, where the list of processes does not show them.
fn read_headers(file: Option<&Path>) -> anyhow::Result<Vec<(String, Secret)>> {
    let Some(file) = file else { return Ok(Vec::new()) };
    parse_headers(file).with_context(|| format!("cannot read {}", file.display()))
}

fn parse_headers(file: &Path) -> anyhow::Result<Vec<(String, Secret)>> {
    let mut text = String::new();
    let input: &mut dyn Read = if file == Path::new("-") { &mut io::stdin().lock() } else { &mut File::open(file)? };
    input.take(HEADER_FILE_BYTES_MAX).read_to_string(&mut text)?;
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    // The line itself may be a secret, so only its number is shown.
    lines.map(|(number, line)| header(line).map_err(|rule| anyhow!("line {number}: {rule}"))).collect()
}

async fn delete(
    context: &CommandContext,
    client: &WebhookClient,
    id: &WebhookId,
    confirmation: Confirmation,
) -> anyhow::Result<()> {
    confirm(format_args!("Delete webhook {id}, with what waits for it?"), confirmation)?;
    client.delete(id).await?;
    context.output.message(format_args!("Deleted webhook {id}"))
}

async fn deliveries(context: &CommandContext, client: &WebhookClient, id: &WebhookId) -> anyhow::Result<()> {
    let row = |delivery: RecentDelivery| {
        let RecentDelivery { dev_id, event, at, is_delivered, status, attempts, duration_us, .. } = delivery;
        let took = Cell::new(format!("{:.1} ms", duration_us as f64 / 1000.0), duration_us);
        let status = status.map(u32::from).into();
        [context.output.time(at), dev_id.into(), event.into(), is_delivered.into(), status, attempts.into(), took]
    };
    let columns = [
        ("time", "Time"),
        ("dev_id", "DevID"),
        ("event", "Event"),
        ("delivered", "Delivered"),
        ("status", "Status"),
        ("attempts", "Attempts"),
        ("duration_us", "Took"),
    ];
    let RecentDeliveryList { deliveries, waiting, next } = client.deliveries(id).await?;
    let table = Table::new(columns, deliveries.into_iter().map(row));
    context.output.table(table, format_args!("The handler remembers no deliveries of webhook {id}"))?;
    let Some(WaitingMessage { dev_id, event, accepted_at, attempts }) = waiting.into_iter().next() else {
        return Ok(());
    };
    let next = next.map(|next| format!("; next attempt at {}", next.to_rfc3339())).unwrap_or_default();
    let since = accepted_at.to_rfc3339();
    context.output.message(format_args!("Waiting since {since}: {event} of {dev_id}, sent {attempts} times{next}"))
}

async fn failed(context: &CommandContext, client: &WebhookClient, id: &WebhookId) -> anyhow::Result<()> {
    let list = client.dead_letters(id, Page::default()).await?;
    let shown = list.dead_letters.len();
    let success = if list.has_delivered { "took everything" } else { "has delivered nothing yet" };
    let row = |letter: DeadLetter| {
        let time = context.output.time(letter.time);
        let attempts = letter.attempts.into();
        [letter.id.into(), letter.dev_id.into(), letter.event.into(), time, attempts, letter.reason.into()]
    };
    let columns = [
        ("id", "ID"),
        ("dev_id", "DevID"),
        ("event", "Event"),
        ("time", "Time"),
        ("attempts", "Attempts"),
        ("reason", "Reason"),
    ];
    let table = Table::new(columns, list.dead_letters.into_iter().map(row));
    context.output.table(table, format_args!("Webhook {id} {success}"))?;
    if shown < list.total {
        context.output.message(format_args!("These are the oldest {shown} of {}", list.total))?;
    }
    Ok(())
}
