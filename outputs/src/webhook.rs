//! Webhooks: HTTP requests with the messages of one application, which its owners manage.

mod address;
mod records;
mod sender;
mod signature;
mod template;

pub use self::records::Webhook;
pub(crate) use self::{
    records::{Loaded, StoredWebhooks},
    sender::WebhookClient,
};
