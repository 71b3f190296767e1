//! Mail over SMTP.

use std::time::Duration;

use async_trait::async_trait;
use lettre::{
    AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor,
    message::{Mailbox, header::ContentType},
};

use super::{Mail, MailError, MailSettings, Mailer};
use crate::{Error, Result};

/// Time that the mail server may take for one response.
const TIMEOUT: Duration = Duration::from_secs(30);

pub(super) struct Smtp {
    from: Mailbox,
    transport: AsyncSmtpTransport<Tokio1Executor>,
}

impl Smtp {
    /// Checks the settings. Connects only when there is a mail to send.
    pub(super) fn new(settings: &MailSettings) -> Result<Self> {
        let from = settings.from.parse();
        let from = from.map_err(|_| Error::Setting {
            name: "account.mail.from",
            must: "must be an address, such as `Airlock <airlock@example.com>`",
        })?;
        let transport = AsyncSmtpTransport::<Tokio1Executor>::from_url(settings.url.expose());
        let transport = transport.map_err(|_| Error::Setting {
            name: "account.mail.url",
            must: "must look like smtps://name:password@host, or smtp://name:password@host?tls=required",
        })?;
        Ok(Self { from, transport: transport.timeout(Some(TIMEOUT)).build() })
    }

    fn message(&self, mail: &Mail) -> std::result::Result<Message, Box<dyn std::error::Error + Send + Sync>> {
        let message = Message::builder().from(self.from.clone()).to(Mailbox::new(None, mail.to.parse()?));
        let message = message.subject(mail.subject).header(ContentType::TEXT_PLAIN);
        Ok(message.body(mail.text.expose().to_owned())?)
    }
}

#[async_trait]
impl Mailer for Smtp {
    async fn send(&self, mail: &Mail) -> std::result::Result<(), MailError> {
        let message = self.message(mail).map_err(MailError::Message)?;
        match self.transport.send(message).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_permanent() => Err(MailError::Refused(error)),
            Err(error) => Err(MailError::Temporary(error.into())),
        }
    }
}
