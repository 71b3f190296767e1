//! Webhooks: HTTP requests with the messages of one application, which its owners manage.

mod address;
mod grants;
mod records;
mod sender;
mod signature;
mod template;

pub use self::{
    grants::{EveryGrant, Grants, Standing},
    records::Webhook,
};
pub(crate) use self::{
    records::{Loaded, StoredWebhooks},
    sender::WebhookClient,
};
