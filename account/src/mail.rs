//! Mails to users: a bounded queue, and what takes them from there.

mod smtp;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::{self, error::TrySendError};
use types::{Secret, UserId};

use crate::{Result, metrics};

use self::smtp::Smtp;

/// How many mails wait at most; what comes on top is dropped, and its user can ask again.
const WAITING_MAX: usize = 256;
/// How long to wait before each further try.
const PAUSES: [Duration; 3] = [Duration::from_secs(2), Duration::from_secs(15), Duration::from_secs(60)];

/// How mail is sent.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MailSettings {
    /// The mail server: `smtps://name:password@host` for TLS from the start, `smtp://…?tls=required` for STARTTLS.
    #[schemars(with = "String", extend("writeOnly" = true))]
    pub url: Secret,
    /// Whom mails are from, such as `Airlock <airlock@example.com>`.
    pub from: String,
}

/// A mail to one user.
#[derive(Clone, Debug)]
pub(crate) struct Mail {
    /// Whom it is for, in the log; addresses are nobody's business there.
    pub(crate) user_id: UserId,
    /// The address.
    pub(crate) to: String,
    pub(crate) subject: &'static str,
    /// The text; it may hold a link that is as good as a password.
    pub(crate) text: Secret,
}

/// Why a mail was not sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MailError {
    /// The mail itself will never do.
    #[error("the mail cannot be written")]
    Mail(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The mail server refuses it for good.
    #[error("the mail server refuses it")]
    Refused(#[source] lettre::transport::smtp::Error),
    /// The mail server is away, or wants to be asked again.
    #[error("the mail server did not take it")]
    Away(#[source] lettre::transport::smtp::Error),
}

/// What sends mails.
#[async_trait]
trait Mailer: Send + Sync {
    /// Sends one; it has left when this returns.
    async fn send(&self, mail: &Mail) -> std::result::Result<(), MailError>;
}

/// Where mails wait; cheap to clone. What waits when the process ends is lost.
#[derive(Clone)]
pub(crate) struct Outbox {
    queue: mpsc::Sender<Mail>,
}

/// Writes mails to the log, for who has no mail server.
struct ToLog;

impl Outbox {
    /// Starts what sends; it ends when nobody can post any more.
    pub(crate) fn start(settings: Option<&MailSettings>) -> Result<Self> {
        let mailer: Arc<dyn Mailer> = match settings {
            Some(settings) => Arc::new(Smtp::new(settings)?),
            None => Arc::new(ToLog),
        };
        let (queue, waiting) = mpsc::channel(WAITING_MAX);
        drop(tokio::spawn(deliver(mailer, waiting)));
        Ok(Self { queue })
    }

    /// Posts a mail; never waits.
    pub(crate) fn post(&self, mail: Mail) {
        let why = match self.queue.try_send(mail) {
            Ok(()) => return,
            Err(TrySendError::Full(_)) => "too many are waiting: is the mail server away?",
            Err(TrySendError::Closed(_)) => "what sends them has ended",
        };
        metrics::mail("dropped");
        tracing::error!(why, "a mail was dropped");
    }
}

async fn deliver(mailer: Arc<dyn Mailer>, mut waiting: mpsc::Receiver<Mail>) {
    while let Some(mail) = waiting.recv().await {
        let sent = send(mailer.as_ref(), &mail).await;
        metrics::mail(if sent { "sent" } else { "failed" });
    }
}

/// Sends one mail, with some tries; says whether it left.
async fn send(mailer: &dyn Mailer, mail: &Mail) -> bool {
    let mut pauses = PAUSES.into_iter();
    loop {
        let Err(error) = mailer.send(mail).await else { return true };
        let pause = if matches!(error, MailError::Away(_)) { pauses.next() } else { None };
        let (user, error) = (&mail.user_id, server::status::Causes(&error).to_string());
        let Some(pause) = pause else {
            tracing::error!(%user, error, "a mail was not sent");
            return false;
        };
        tracing::warn!(%user, error, again_s = pause.as_secs(), "a mail was not sent yet");
        tokio::time::sleep(pause).await;
    }
}

#[async_trait]
impl Mailer for ToLog {
    async fn send(&self, mail: &Mail) -> std::result::Result<(), MailError> {
        let (subject, text) = (mail.subject, mail.text.expose());
        tracing::warn!(user = %mail.user_id, subject, text, "no mail server is set (account.mail): this is the mail");
        Ok(())
    }
}
