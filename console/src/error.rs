//! Reasons why a page cannot be shown, or a change not made.

use server::ledger::Exceeded;
use types::{AppId, BytesError, ComponentId, DevId, IdError, Kind, Kinded, WebhookId};

/// The result of a call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Reasons why a page cannot be shown, or a change not made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody is logged in, or the login has expired.
    #[error("you are not logged in")]
    LoggedOut,
    /// The login went wrong.
    #[error("you could not be logged in: {0}")]
    Login(&'static str),
    /// There is no such page, or the user may not know of it.
    #[error("there is no such {0}, or you may not see it")]
    NotFound(&'static str),
    /// No handler serves the application.
    #[error("no handler serves this application yet: register it on its Devices page")]
    NotServed,
    /// Another site caused a request that would change something.
    #[error("another site sent this form: open the page at {0} and send it from there")]
    OtherSite(String),
    /// A value in a form is not valid.
    #[error("{what} not valid: {must}")]
    Invalid {
        /// The field.
        what: &'static str,
        /// The rule that it breaks.
        must: String,
    },
    /// The form cannot be read.
    #[error("cannot read the form: {0}")]
    Form(String),
    /// The console has just started, and does not know the other services yet.
    #[error("the services are starting: try again in a moment")]
    Starting,
    /// The handler of this network has not announced itself yet.
    #[error("this network's handler, {0}, has not started yet: try again in a moment")]
    HandlerStarting(ComponentId),
    /// The handler would receive the user's token unencrypted.
    #[error("the handler of this application has no certificate: turn on its TLS, or set client.allow_insecure")]
    Insecure,
    /// A message was not sent again, or not to everybody.
    #[error("the message was not sent again: {0}")]
    NotSent(String),
    /// A version is not tried any more, so that it can neither be promoted nor abandoned.
    #[error("version {0} is no longer being rolled out: this page shows the current state")]
    NoShare(u32),
    /// Somebody has or had an application with this id.
    #[error("application id {0} is taken: choose another")]
    ApplicationTaken(AppId),
    /// The user's own application must not get other functions unseen.
    #[error("your application {0} has other functions: choose another id, or open it in the list of applications")]
    ApplicationInUse(AppId),
    /// A new webhook must not replace another.
    #[error("webhook {0} already exists: choose another id, or delete that one first")]
    WebhookExists(WebhookId),
    /// A new device must not replace another.
    #[error("device {0} already exists: choose another id, or edit that device")]
    DeviceExists(DevId),
    /// A form that was sent before must not bring back what somebody has deleted. If the answer was lost, nobody knows
    /// whether there was anything to delete.
    #[error(
        "device {0} may have been registered with this form and deleted since: to register it, send the form below"
    )]
    DeviceDeleted(DevId),
    /// The handler sent a device that cannot be read.
    #[error("the handler sent a device that is not valid")]
    Device(#[from] BytesError),
    /// The devices cannot be written as a file.
    #[error("cannot write the file of devices")]
    DeviceFile(#[from] device_file::Error),
    /// Charts take too long.
    #[error("the charts were not read in time: choose fewer devices or a shorter period")]
    SlowCharts,
    /// The account service did not answer in time.
    #[error("the account service does not answer: try again later")]
    SlowAccount,
    /// As many files are being downloaded as may be at once.
    #[error("as many files are being downloaded as may be at once: wait until one of them is complete")]
    Downloads,
    /// As many live views are open as there may be.
    #[error(transparent)]
    LiveViews(#[from] Exceeded),
    /// A service answered with an error, or not at all.
    #[error(transparent)]
    Service(#[from] client::Error),
    /// An id is not valid.
    #[error(transparent)]
    Id(#[from] IdError),
    /// A cookie cannot be sealed.
    #[error(transparent)]
    Seal(#[from] server::seal::SealError),
    /// A template cannot be rendered.
    #[error("cannot render a page")]
    Page(#[from] askama::Error),
}

impl Kinded for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::LoggedOut => Kind::Unauthenticated,
            Self::NotFound(_) | Self::NotServed | Self::Id(_) => Kind::NotFound,
            Self::NoShare(_) | Self::WebhookExists(_) | Self::DeviceExists(_) | Self::DeviceDeleted(_) => {
                Kind::Conflict
            }
            Self::ApplicationTaken(_) | Self::ApplicationInUse(_) => Kind::Conflict,
            Self::OtherSite(_) => Kind::Denied,
            Self::Login(_) | Self::Invalid { .. } | Self::Form(_) => Kind::Invalid,
            Self::Starting | Self::HandlerStarting(_) | Self::Insecure | Self::NotSent(_) => Kind::Unavailable,
            Self::Downloads => Kind::Exhausted,
            Self::SlowCharts | Self::SlowAccount => Kind::Timeout,
            Self::LiveViews(error) => error.kind(),
            Self::Service(error) => error.kind(),
            Self::Seal(_) | Self::Page(_) | Self::Device(_) | Self::DeviceFile(_) => Kind::Internal,
        }
    }
}

impl Error {
    /// An error of the account service, for which a login that has ended there counts as none.
    pub(crate) fn of_account(error: client::Error) -> Self {
        match error.kind() {
            Kind::Unauthenticated => Self::LoggedOut,
            _ => Self::Service(error),
        }
    }

    /// Hides the difference between what does not exist and what the user may not see.
    pub(crate) fn hiding(what: &'static str, error: client::Error) -> Self {
        match error.kind() {
            Kind::NotFound | Kind::Denied => Self::NotFound(what),
            _ => Self::Service(error),
        }
    }
}
