//! Webhooks: HTTP requests with the messages of one application, which its owners manage.

mod address;
mod change;
mod grants;
mod names;
mod records;
mod reuse;
mod sender;
mod signature;
mod template;

pub use self::{
    change::WebhookChange,
    grants::{EveryGrant, Grants, Standing},
    names::{LookUp, system_look_up},
    records::Webhook,
};
pub(crate) use self::{
    names::Names,
    records::{Loaded, StoredWebhooks},
    sender::WebhookClient,
};
