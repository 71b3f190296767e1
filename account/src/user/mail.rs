//! Mails to users: a bounded queue with retries.

mod smtp;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::{
    sync::mpsc::{self, error::TrySendError},
    time::Instant,
};
use types::{Secret, UserId};

use self::smtp::Smtp;
use crate::{Result, metrics};

/// Maximum number of mails that wait to be sent, and of those that wait for a retry. Others are dropped; users can ask
/// again.
const WAITING_MAX: usize = 256;
const RETRY_DELAYS: [Duration; 3] = [Duration::from_secs(2), Duration::from_secs(15), Duration::from_secs(60)];

/// The SMTP server, and the sender of mails.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MailSettings {
    /// The mail server: `smtps://name:password@host` for implicit TLS, `smtp://…?tls=required` for STARTTLS.
    #[schemars(with = "String", extend("writeOnly" = true))]
    pub url: Secret,
    /// The sender, such as `Airlock <airlock@example.com>`.
    pub from: String,
}

#[derive(Clone, Debug)]
pub(crate) struct Mail {
    /// Identifies the recipient in the log, which must not contain addresses.
    pub(crate) user_id: UserId,
    pub(crate) to: String,
    pub(crate) subject: &'static str,
    /// May contain a link that is as secret as a password.
    pub(crate) text: Secret,
}

/// Reasons why a mail was not sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MailError {
    #[error("the mail cannot be written")]
    Message(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The mail server refused it permanently.
    #[error("the mail server refused it")]
    Refused(#[source] lettre::transport::smtp::Error),
    /// The mail server is unavailable or asks for a retry.
    #[error("the mail server did not take it")]
    Temporary(#[source] Box<dyn std::error::Error + Send + Sync>),
}

#[async_trait]
trait Mailer: Send + Sync {
    /// Sends a mail and waits until the server has accepted it.
    async fn send(&self, mail: &Mail) -> std::result::Result<(), MailError>;
}

/// The queue of mails. Cheap to clone. Mails that are still queued when the process ends are lost.
#[derive(Clone)]
pub(crate) struct Outbox {
    queue: mpsc::Sender<Mail>,
}

struct Attempt {
    mail: Mail,
    due: Instant,
    /// The delays before the remaining retries.
    delays: std::array::IntoIter<Duration, 3>,
}

/// Logs mails if no mail server is configured.
struct LogMailer;

impl Outbox {
    /// Starts the sending task, which ends when the last `Outbox` is dropped.
    pub(crate) fn start(settings: Option<&MailSettings>) -> Result<Self> {
        let mailer: Arc<dyn Mailer> = match settings {
            Some(settings) => Arc::new(Smtp::new(settings)?),
            None => Arc::new(LogMailer),
        };
        let (queue, waiting) = mpsc::channel(WAITING_MAX);
        drop(tokio::spawn(deliver(mailer, waiting)));
        Ok(Self { queue })
    }

    /// Queues a mail without waiting.
    pub(crate) fn post(&self, mail: Mail) {
        let why = match self.queue.try_send(mail) {
            Ok(()) => return,
            Err(TrySendError::Full(_)) => "too many are waiting: is the mail server away?",
            Err(TrySendError::Closed(_)) => "what sends them has ended",
        };
        metrics::mail("dropped");
        tracing::error!(why, "mail dropped");
    }
}

impl Attempt {
    fn first(mail: Mail) -> Self {
        Self { mail, due: Instant::now(), delays: RETRY_DELAYS.into_iter() }
    }
}

/// Sends queued mails, and retries those that failed temporarily. A mail that waits for a retry does not delay others.
async fn deliver(mailer: Arc<dyn Mailer>, mut posted: mpsc::Receiver<Mail>) {
    let mut again: Vec<Attempt> = Vec::new();
    loop {
        let next = again.iter().enumerate().min_by_key(|(_, attempt)| attempt.due);
        let next = next.map(|(place, attempt)| (place, attempt.due));
        let attempt = tokio::select! {
            () = until(next.map(|(_, due)| due)) => again.swap_remove(next.map_or(0, |(place, _)| place)),
            mail = posted.recv(), if again.len() < WAITING_MAX => match mail {
                Some(mail) => Attempt::first(mail),
                None => return,
            },
        };
        again.extend(send(mailer.as_ref(), attempt).await);
    }
}

/// Sleeps until `due`, or forever if there is none.
async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// Tries to send a mail. Returns it if it should be retried.
async fn send(mailer: &dyn Mailer, mut attempt: Attempt) -> Option<Attempt> {
    let Err(error) = mailer.send(&attempt.mail).await else {
        metrics::mail("sent");
        return None;
    };
    let pause = if matches!(error, MailError::Temporary(_)) { attempt.delays.next() } else { None };
    let (user, error) = (&attempt.mail.user_id, server::status::ErrorChain(&error).to_string());
    let Some(pause) = pause else {
        tracing::error!(%user, error, "cannot send mail");
        metrics::mail("failed");
        return None;
    };
    tracing::warn!(%user, error, again_s = pause.as_secs(), "cannot send mail yet");
    attempt.due = Instant::now() + pause;
    Some(attempt)
}

#[async_trait]
impl Mailer for LogMailer {
    async fn send(&self, mail: &Mail) -> std::result::Result<(), MailError> {
        let (subject, text) = (mail.subject, mail.text.expose());
        tracing::warn!(user = %mail.user_id, subject, text, "no mail server is configured (account.mail); this is the mail");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mail server that is unavailable for one address.
    struct FlakyMailer(mpsc::UnboundedSender<(String, Duration)>, Instant);

    #[async_trait]
    impl Mailer for FlakyMailer {
        async fn send(&self, mail: &Mail) -> std::result::Result<(), MailError> {
            self.0.send((mail.to.clone(), self.1.elapsed())).unwrap();
            if mail.to == "away" { Err(MailError::Temporary("later".into())) } else { Ok(()) }
        }
    }

    fn mail(to: &str) -> Mail {
        let (user_id, text) = (UserId::from_bytes([1; 12]), Secret::new("text"));
        Mail { user_id, to: to.to_owned(), subject: "subject", text }
    }

    #[tokio::test(start_paused = true)]
    async fn a_retried_mail_does_not_delay_others() {
        let (seen, mut tries) = mpsc::unbounded_channel();
        let (post, posted) = mpsc::channel(WAITING_MAX);
        tokio::spawn(deliver(Arc::new(FlakyMailer(seen, Instant::now())), posted));
        let mut expected = vec![("away", 0), ("first", 0), ("away", 2), ("second", 2), ("away", 17), ("away", 77)];
        for to in ["away", "first"] {
            post.send(mail(to)).await.unwrap();
        }
        expected.reverse();
        while let Some((to, after_s)) = expected.pop() {
            assert_eq!(tries.recv().await.unwrap(), (to.to_owned(), Duration::from_secs(after_s)));
            if (to, after_s) == ("away", 2) {
                post.send(mail("second")).await.unwrap();
            }
        }
        drop(post);
        assert!(tries.recv().await.is_none(), "four tries are all, and then it ends");
    }
}
