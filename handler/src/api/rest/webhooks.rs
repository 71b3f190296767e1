//! Webhooks over HTTP, with paths of our own.

use std::sync::Arc;

use aide::axum::{
    ApiRouter,
    routing::{ApiMethodRouter, get_with, post_with},
};
use api::rest::handler as body;
use axum::extract::{Path, Query, State, rejection::QueryRejection};
use outputs::{DeadLetters, Standing, WebhookChange};
use schemars::JsonSchema;
use serde::Deserialize;
use server::{
    auth::Presented,
    json::{Empty, Json, JsonObject},
    openapi::OperationExt,
};
use types::{AppId, Kind, WebhookId};

use super::{ApplicationPath, HttpResult, Shared};
use crate::{
    Error,
    api::{
        operations::{Operations, webhooks::WebhookState},
        wire::app_id,
    },
};

/// Reason shown for a webhook that sends nothing.
const WITHDRAWN: &str = "whoever set it may no longer read messages: change it, or set it again, to go on";
const UNKNOWN: &str = "the account service does not say whether it may go on: it goes on by itself";

/// A webhook, as its path names it.
#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
struct WebhookPath {
    /// The application.
    #[schemars(with = "AppId")]
    app_id: String,
    /// The webhook.
    #[schemars(with = "WebhookId")]
    webhook_id: String,
}

/// Which dead letters to read.
#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
struct DeadLetterQuery {
    /// Maximum number to list; 0 lists as many as a response holds.
    #[serde(default)]
    limit: usize,
    /// Number to skip.
    #[serde(default)]
    offset: usize,
}

impl WebhookPath {
    fn ids(&self) -> Result<(AppId, WebhookId), Error> {
        Ok((app_id(&self.app_id)?, self.webhook_id.parse()?))
    }
}

pub(super) fn routes() -> ApiRouter<Arc<Operations>> {
    let list =
        get_with(list, |op| op.doc("ListWebhooks", "List the webhooks of an application").fails(&[Kind::NotFound]));
    let test = post_with(test, |op| {
        op.doc(
            "TestWebhook",
            "Send a sample uplink of the device `test-device` to a webhook, with the event `test`, once, and tell whether \
             the receiver took it",
        )
        .fails(&[Kind::NotFound, Kind::Conflict])
    });
    let dead_letters = get_with(list_dead_letters, |op| {
        op.doc("ListDeadLetters", "List messages that a webhook did not take, the oldest first")
            .fails(&[Kind::NotFound])
    })
    .delete_with(delete_dead_letters, |op| {
        op.doc("DeleteDeadLetters", "Delete the messages that a webhook did not take").fails(&[Kind::NotFound])
    });
    let recent = get_with(list_recent, |op| {
        op.doc(
            "ListWebhookDeliveries",
            "List what a webhook took, or did not take in the end, as far as the handler that delivers remembers it, the \
             newest first; and what waits for it, the oldest first",
        )
        .fails(&[Kind::NotFound])
    });
    let resend = post_with(resend, |op| {
        op.doc("ResendDeadLetters", "Send messages again that a webhook did not take: those with these ids, or all")
            .fails(&[Kind::NotFound, Kind::Conflict])
    });
    ApiRouter::new()
        .api_route("/applications/{app_id}/webhooks", list)
        .api_route("/applications/{app_id}/webhooks/{webhook_id}", webhook())
        .api_route("/applications/{app_id}/webhooks/{webhook_id}/test", test)
        .api_route("/applications/{app_id}/webhooks/{webhook_id}/deliveries", recent)
        .api_route("/applications/{app_id}/webhooks/{webhook_id}/dead-letters", dead_letters)
        .api_route("/applications/{app_id}/webhooks/{webhook_id}/dead-letters/resend", resend)
}

fn webhook() -> ApiMethodRouter<Arc<Operations>> {
    get_with(get, |op| op.doc("GetWebhook", "Get a webhook without its secrets").fails(&[Kind::NotFound]))
        .put_with(set, |op| {
            op.doc(
                "SetWebhook",
                "Create or replace a webhook. Needs the rights `settings` and `messages:up:r`, and sends messages while \
                 you have the second one. Omitted members are cleared; what waits for it stays.",
            )
            .fails(&[Kind::NotFound, Kind::Conflict])
        })
        .patch_with(update, |op| {
            op.doc(
                "UpdateWebhook",
                "Change a webhook. Omitted members stay; `null` removes the secret, a header, all headers, or the \
                 selection of events. Needs the same rights as setting it, and from then on it sends messages while \
                 you may read them. With the member `revision`, it is changed only if it still has that revision. What \
                 waits for it stays.",
            )
            .fails(&[Kind::NotFound, Kind::Conflict])
        })
        .delete_with(delete, |op| {
            op.doc("DeleteWebhook", "Delete a webhook, with what waits for it").fails(&[Kind::NotFound, Kind::Conflict])
        })
}

async fn list(
    State(operations): Shared,
    Path(path): Path<ApplicationPath>,
    Presented(caller): Presented,
) -> HttpResult<Json<body::WebhookList>> {
    let webhooks = operations.list_webhooks(caller?, &app_id(&path.app_id)?).await?;
    let webhooks = webhooks.into_iter().map(|(id, webhook, state)| shown(id, webhook, state)).collect();
    Ok(Json(body::WebhookList { webhooks }))
}

async fn get(
    State(operations): Shared,
    Path(path): Path<WebhookPath>,
    Presented(caller): Presented,
) -> HttpResult<Json<body::Webhook>> {
    let (app_id, id) = path.ids()?;
    let (webhook, state) = operations.get_webhook(caller?, &app_id, &id).await?;
    Ok(Json(shown(id, webhook, state)))
}

async fn set(
    State(operations): Shared,
    Path(path): Path<WebhookPath>,
    Presented(caller): Presented,
    JsonObject(body): JsonObject<body::NewWebhook>,
) -> HttpResult<Json<body::Webhook>> {
    let (app_id, id) = path.ids()?;
    let body::NewWebhook { url, events, headers, secret } = body;
    let webhook = outputs::Webhook { url, events, headers, secret, ..outputs::Webhook::default() };
    let (webhook, state) = operations.set_webhook(caller?, &app_id, &id, webhook).await?;
    Ok(Json(shown(id, webhook, state)))
}

async fn update(
    State(operations): Shared,
    Path(path): Path<WebhookPath>,
    Presented(caller): Presented,
    JsonObject(body): JsonObject<body::WebhookChange>,
) -> HttpResult<Json<body::Webhook>> {
    let (app_id, id) = path.ids()?;
    let body::WebhookChange { revision, url, events, headers, secret } = body;
    let change = WebhookChange { revision, url, events, headers, secret, ..WebhookChange::default() };
    let (webhook, state) = operations.update_webhook(caller?, &app_id, &id, change).await?;
    Ok(Json(shown(id, webhook, state)))
}

async fn delete(State(operations): Shared, Path(path): Path<WebhookPath>, Presented(caller): Presented) -> HttpResult {
    let (app_id, id) = path.ids()?;
    operations.delete_webhook(caller?, &app_id, &id).await?;
    Ok(Json(Empty {}))
}

async fn test(
    State(operations): Shared,
    Path(path): Path<WebhookPath>,
    Presented(caller): Presented,
) -> HttpResult<Json<body::WebhookAnswer>> {
    let (app_id, id) = path.ids()?;
    let answer = operations.test_webhook(caller?, &app_id, &id).await?;
    Ok(Json(body::WebhookAnswer { is_taken: answer.is_ok(), reason: answer.err().unwrap_or_default() }))
}

async fn list_recent(
    State(operations): Shared,
    Path(path): Path<WebhookPath>,
    Presented(caller): Presented,
) -> HttpResult<Json<body::RecentDeliveryList>> {
    let (app_id, id) = path.ids()?;
    let (deliveries, waiting) = operations.list_webhook_deliveries(caller?, &app_id, &id).await?;
    Ok(Json(body::RecentDeliveryList {
        deliveries: deliveries.into_iter().map(recent_delivery).collect(),
        waiting: waiting.messages.into_iter().map(waiting_message).collect(),
        next: waiting.next,
    }))
}

async fn list_dead_letters(
    State(operations): Shared,
    Path(path): Path<WebhookPath>,
    query: Result<Query<DeadLetterQuery>, QueryRejection>,
    Presented(caller): Presented,
) -> HttpResult<Json<body::DeadLetterList>> {
    let (app_id, id) = path.ids()?;
    let Query(DeadLetterQuery { limit, offset }) =
        query.map_err(|_| Error::invalid("Limit or offset", "must be whole numbers from 0 up"))?;
    let found = operations.list_dead_letters(caller?, (&app_id, &id), offset, limit).await?;
    let DeadLetters { letters, total, has_delivered } = found;
    let dead_letters = letters.into_iter().map(dead_letter).collect();
    Ok(Json(body::DeadLetterList { dead_letters, total, has_delivered }))
}

async fn delete_dead_letters(
    State(operations): Shared,
    Path(path): Path<WebhookPath>,
    Presented(caller): Presented,
) -> HttpResult {
    let (app_id, id) = path.ids()?;
    operations.delete_dead_letters(caller?, &app_id, &id).await?;
    Ok(Json(Empty {}))
}

async fn resend(
    State(operations): Shared,
    Path(path): Path<WebhookPath>,
    Presented(caller): Presented,
    JsonObject(body): JsonObject<body::Resend>,
) -> HttpResult<Json<body::Resent>> {
    let (app_id, id) = path.ids()?;
    let resent = operations.resend_dead_letters(caller?, (&app_id, &id), &body.ids).await?;
    Ok(Json(body::Resent { resent }))
}

fn shown(id: WebhookId, webhook: outputs::Webhook, state: WebhookState) -> body::Webhook {
    let WebhookState { standing, waiting, failing } = state;
    let stopped = match standing {
        Standing::Holds => None,
        Standing::Withdrawn => Some(WITHDRAWN),
        Standing::Unknown => Some(UNKNOWN),
    };
    body::Webhook {
        id,
        revision: webhook.revision,
        url: webhook.url,
        events: webhook.events,
        header_names: webhook.headers.into_keys().collect(),
        is_signed: webhook.secret.is_some(),
        stopped: stopped.map(str::to_owned),
        waiting,
        failing: failing.map(|outputs::Failing { since, last, reason }| body::Failing { since, last, reason }),
    }
}

fn recent_delivery(delivery: outputs::RecentDelivery) -> body::RecentDelivery {
    let outputs::RecentDelivery { dev_id, event, accepted, at, is_delivered, status, attempts, duration } = delivery;
    body::RecentDelivery {
        dev_id: dev_id.map(String::from).unwrap_or_default(),
        event: event.to_owned(),
        accepted_at: accepted,
        at,
        is_delivered,
        status,
        attempts,
        duration_us: u64::try_from(duration.as_micros()).unwrap_or(u64::MAX),
    }
}

fn waiting_message(message: outputs::WaitingMessage) -> body::WaitingMessage {
    let outputs::WaitingMessage { dev_id, event, accepted, attempts } = message;
    let dev_id = dev_id.map(String::from).unwrap_or_default();
    body::WaitingMessage { dev_id, event, accepted_at: accepted, attempts }
}

fn dead_letter(letter: outputs::DeadLetter) -> body::DeadLetter {
    let outputs::DeadLetter { id, message, failed_at, attempts, reason } = letter;
    body::DeadLetter {
        id,
        dev_id: message.dev_id.map(String::from).unwrap_or_default(),
        event: message.event,
        time: message.time,
        failed_at,
        attempts,
        reason,
        body: message.body,
    }
}
