//! Mails to users: a bounded queue, and what takes them from there.

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

/// How many mails wait at most to be sent, and as many to be sent again; what comes on top is dropped, and its user can
/// ask again.
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
    Away(#[source] Box<dyn std::error::Error + Send + Sync>),
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

/// A mail that is to be sent, or sent again.
struct Attempt {
    mail: Mail,
    /// When.
    due: Instant,
    /// How long to wait before each try after that.
    pauses: std::array::IntoIter<Duration, 3>,
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

impl Attempt {
    /// The first one, at once.
    fn first(mail: Mail) -> Self {
        Self { mail, due: Instant::now(), pauses: PAUSES.into_iter() }
    }
}

/// Sends what is posted, and again what the mail server did not take: others pass it while it waits.
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

/// Waits for this moment; without one, for ever.
async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// Tries to send one mail; gives what is left to try.
async fn send(mailer: &dyn Mailer, mut attempt: Attempt) -> Option<Attempt> {
    let Err(error) = mailer.send(&attempt.mail).await else {
        metrics::mail("sent");
        return None;
    };
    let pause = if matches!(error, MailError::Away(_)) { attempt.pauses.next() } else { None };
    let (user, error) = (&attempt.mail.user_id, server::status::Causes(&error).to_string());
    let Some(pause) = pause else {
        tracing::error!(%user, error, "a mail was not sent");
        metrics::mail("failed");
        return None;
    };
    tracing::warn!(%user, error, again_s = pause.as_secs(), "a mail was not sent yet");
    attempt.due = Instant::now() + pause;
    Some(attempt)
}

#[async_trait]
impl Mailer for ToLog {
    async fn send(&self, mail: &Mail) -> std::result::Result<(), MailError> {
        let (subject, text) = (mail.subject, mail.text.expose());
        tracing::warn!(user = %mail.user_id, subject, text, "no mail server is set (account.mail): this is the mail");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mail server that is away for one address.
    struct Choosy(mpsc::UnboundedSender<(String, Duration)>, Instant);

    #[async_trait]
    impl Mailer for Choosy {
        async fn send(&self, mail: &Mail) -> std::result::Result<(), MailError> {
            self.0.send((mail.to.clone(), self.1.elapsed())).unwrap();
            if mail.to == "away" { Err(MailError::Away("later".into())) } else { Ok(()) }
        }
    }

    fn mail(to: &str) -> Mail {
        let (user_id, text) = (UserId::from_bytes([1; 12]), Secret::new("text"));
        Mail { user_id, to: to.to_owned(), subject: "subject", text }
    }

    #[tokio::test(start_paused = true)]
    async fn a_mail_that_waits_lets_others_pass() {
        let (seen, mut tries) = mpsc::unbounded_channel();
        let (post, posted) = mpsc::channel(WAITING_MAX);
        tokio::spawn(deliver(Arc::new(Choosy(seen, Instant::now())), posted));
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
