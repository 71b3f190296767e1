//! The errors of the handler, with a variant for each that callers treat differently.

mod conversion;
mod function;
mod kind;
mod remedy;

use std::{fmt, sync::Arc};

use types::{AppId, DevEui, DevId, DevicePath, Kind, RateLimitExceeded};

pub use self::function::FunctionError;

/// Errors of the handler's operations.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The same error of several uplinks.
    #[error(transparent)]
    Shared(Arc<Error>),
    /// A value breaks a rule.
    #[error("{what} not valid: {reason}")]
    Invalid {
        /// Name of the value.
        what: &'static str,
        /// The rule, and the allowed values.
        reason: String,
    },
    /// An id is malformed.
    #[error(transparent)]
    Id(#[from] types::IdError),
    /// It does not exist on this handler.
    #[error("{what} {id} not found{}", remedy::of(what, id))]
    NotFound {
        /// Kind of the entity, such as `Device`.
        what: &'static str,
        /// Its id.
        id: String,
    },
    /// A version of an application's functions does not exist, or was dropped.
    #[error("Version {number} of application {app_id} not found: {kept}")]
    VersionNotFound {
        /// The application.
        app_id: AppId,
        /// The number of the version; zero for the one that is live.
        number: u32,
        /// The versions that exist.
        kept: String,
    },
    /// Some devices have other functions, so those of all cannot be changed.
    #[error(
        "version {version} has a share of {share} of the devices of application {app_id}: first make it live for all \
         with `airlock applications pf promote`, or end it with `airlock applications pf abandon`"
    )]
    CandidateExists {
        /// The application.
        app_id: AppId,
        /// The version that some devices have.
        version: u32,
        /// The share of the devices, such as `5%`.
        share: String,
    },
    /// No share of an application's devices has functions of its own.
    #[error(
        "application {0} has no version for a share of its devices: try one with \
         `airlock applications pf set decoder decoder.js --share 5%`"
    )]
    NoCandidate(AppId),
    /// The id is taken.
    #[error("{what} {id} already exists")]
    AlreadyExists {
        /// Kind of the entity, such as `Device`.
        what: &'static str,
        /// Its id.
        id: String,
    },
    /// The network cannot say now which device it is.
    #[error(
        "device with DevEUI {dev_eui} of application {app_id} is not known here, and its network cannot say more now"
    )]
    Unidentified {
        /// Its application.
        app_id: AppId,
        /// Its DevEUI.
        dev_eui: DevEui,
    },
    /// Others kept changing the same object at the same time.
    #[error("{0} was changed by somebody else at the same time: read it again and repeat the change")]
    Conflict(String),
    /// It goes to another application right now, or comes from one. Others are not concerned.
    #[error("{0} is moving from one application to another: try again in a moment")]
    Moving(String),
    /// A downlink waited for a device that went to another application.
    #[error("the downlink was dropped: its device was moved to another application")]
    Moved,
    /// A payload function cannot be used.
    #[error("payload function not valid: {0:#}")]
    Function(Box<FunctionError>),
    /// The queue for the sandbox is full.
    #[error("too many payloads wait for a sandbox: try again later")]
    Busy(#[from] runtime::Busy),
    /// A network reports about a downlink whose id may not be stored yet.
    #[error("a downlink for {0} is just being handed over")]
    HandingOver(DevId),
    /// The credential is missing or invalid, or cannot be checked now.
    #[error(transparent)]
    Auth(#[from] server::auth::AuthError),
    /// The credential lacks the right.
    #[error("permission denied: no `{right}` right to application {app_id}")]
    Denied {
        /// The missing right; one of several is enough.
        right: String,
        /// The application.
        app_id: AppId,
    },
    /// The credential has no scope for this handler.
    #[error("permission denied: no scope `components:{0}`")]
    ComponentDenied(types::ComponentId),
    /// The caller is not a network broker that this handler trusts.
    #[error("permission denied: only network brokers listed in the setting `handler.brokers` may send join requests")]
    NetworkBrokerDenied,
    /// A network broker has signed its own token, and there is no key to verify it with.
    #[error(
        "permission denied: network broker `{0}` has announced no public key to discovery, so its own token cannot be \
         verified"
    )]
    NetworkBrokerKey(types::ComponentId),
    /// The discovery service cannot be asked for the key of a network broker.
    #[error("the discovery service cannot be asked for the key of the network broker: try again later")]
    Discovery(#[source] client::Error),
    /// A network broker did not register or delete a device.
    #[error("network broker `{id}` did not change the device: {reason}")]
    NetworkBroker {
        /// The network broker.
        id: types::ComponentId,
        /// The reason.
        reason: client::Error,
    },
    /// The network server behind a network broker refused a device. Its reason is in the log only.
    #[error(
        "network broker `{id}` did not change the device: its network server refused it, as it does if the EUIs are taken or the caller has no rights there"
    )]
    NetworkServerRefused {
        /// The network broker.
        id: types::ComponentId,
        /// `Denied` or `AlreadyExists`.
        kind: Kind,
    },
    /// A network broker that was there is not announced any more.
    #[error("network broker `{0}` is not announced")]
    NetworkBrokerAway(types::ComponentId),
    /// The handler has no token of its own with which it could ask the account service for others.
    #[error("the handler has no token: set handler.token_file")]
    HandlerToken,
    /// The account service gave the handler no token for an application's devices.
    #[error("the account service gives no token for the devices of an application")]
    DeviceToken(#[source] client::Error),
    /// Too many calls about the devices of an application wait for network brokers.
    #[error("too many devices of the application are changed at once: try again later")]
    NetworkBrokersBusy,
    /// A device that joins has no AppKey.
    #[error("AppKey for device {0} not found")]
    NoAppKey(DevId),
    /// A join request was not signed with the device's AppKey.
    #[error("device that validates MIC not found")]
    WrongMic,
    /// A device has not been activated, so it has no keys for its frames.
    #[error("session keys of device {0} not found")]
    NoSession(DevId),
    /// An uplink was not signed with the device's NwkSKey.
    #[error("Uplink not valid: its MIC is not made with the NwkSKey of the device")]
    UplinkMic,
    /// The connection over which a downlink should leave has ended, or too many downlinks wait there.
    #[error("the network broker takes no downlinks now: the downlink waits for the next uplink")]
    NetworkBrokerGone,
    /// Unexpected failure in the crypto library.
    #[error("cannot {0}")]
    Crypto(&'static str),
    /// A rate limit is exceeded.
    #[error("Rate limit for {} \"{name}\" reached: try again in {} s", .exceeded.policy, .exceeded.wait_s)]
    RateLimited {
        /// The limit, and the time until the next try.
        exceeded: RateLimitExceeded,
        /// The client or application whose calls were counted.
        name: String,
    },
    /// A secret in the store cannot be sealed or opened.
    #[error(transparent)]
    Seal(#[from] server::seal::SealError),
    /// History cannot be read. Where its files are is in the log only.
    #[error("the history cannot be read now: try again later")]
    History(#[from] history::Error),
    /// A record was not found, but may be in files of history, or in a bucket, that cannot be read.
    #[error("Record {id} may be in history that cannot be read now: {files}: try again later, or ask the operator")]
    RecordUnreadable {
        /// Its id.
        id: String,
        /// The names of the files.
        files: String,
    },
    /// Another handler does work of which an application has one at a time.
    #[error("another handler runs {what} of application {app_id}: use that handler, or try again when it is done")]
    RunningElsewhere {
        /// Such as `a correction`.
        what: &'static str,
        /// The application.
        app_id: AppId,
    },
    /// The store was away for so long that another handler may do the work by now.
    #[error("{what} of application {app_id} stopped, because this handler could not renew its claim: try again")]
    ClaimLost {
        /// Such as `a correction`.
        what: &'static str,
        /// The application.
        app_id: AppId,
    },
    /// Work of which an application has one at a time.
    #[error("{what} of application {app_id} is running already: try again when that is done")]
    Running {
        /// Such as `a correction`.
        what: &'static str,
        /// The application.
        app_id: AppId,
    },
    /// A correction cannot be kept.
    #[error("the correction of an uplink cannot be kept in history: {0}: try again later")]
    CorrectionNotKept(&'static str),
    /// Nobody who should get messages again has room for them. It names them.
    #[error("there is no room for more than live messages at {0}: go on when it takes messages again")]
    NoRoom(String),
    /// The store failed.
    #[error("{}", .0.summary())]
    Store(#[from] store::Error),
    /// The store has an application without its functions.
    #[error("the payload functions of application {0} are missing in the store: save them again")]
    FunctionsMissing(AppId),
    /// An output or a webhook.
    #[error(transparent)]
    Output(#[from] outputs::Error),
    /// A change cannot be recorded in the audit log.
    #[error(transparent)]
    Audit(#[from] server::audit::AuditError),
    /// A webhook was set by a caller whose rights cannot be asked for later.
    #[error("permission denied: only users and access keys can set webhooks")]
    WebhookCaller,
    /// Nobody can say now whether a webhook may send.
    #[error("the account service cannot be asked now whether the webhook may still send: try again later")]
    WebhookUnknown,
    /// The server does not handle it now.
    #[error(transparent)]
    NotAdmitted(#[from] server::serve::Refusal),
    /// A line of a batch is too long.
    #[error("line not valid: must have at most {bytes_max} bytes")]
    LineTooLong {
        /// The limit.
        bytes_max: usize,
    },
    /// A batch ends because too much of it is no uplink.
    #[error("{bytes_max} bytes came without an uplink: send again from the first uplink that was not answered")]
    NoUplinks {
        /// The limit.
        bytes_max: usize,
    },
    /// A batch ends because its body broke off.
    #[error("the body broke off: send again from the first uplink that was not answered")]
    BodyCut,
    /// A batch ends because the process does.
    #[error("the handler is shutting down: send again from the first uplink that was not answered")]
    Stopping,
    /// A batch ends because nothing of it comes.
    #[error("no uplink came for {wait_s} s: send again from the first that was not answered")]
    Paused {
        /// The time that it may take, in seconds.
        wait_s: u64,
    },
    /// A message cannot be published now, or nobody has confirmed it.
    #[error("cannot publish the message: {0}: try again later")]
    Unpublished(String),
    /// A message can never be published, because it is too large for a broker.
    #[error("cannot publish the message: {0}")]
    Unpublishable(String),
    /// A record in the store cannot be read or written.
    #[error("a record in the store cannot be read")]
    Record(#[from] serde_json::Error),
    /// The record of a device in the store is damaged.
    #[error("the record of a device in the store is damaged")]
    DeviceRecord(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    pub(crate) fn invalid(what: &'static str, reason: impl fmt::Display) -> Self {
        Self::Invalid { what, reason: reason.to_string() }
    }

    pub(crate) fn not_found(what: &'static str, id: impl fmt::Display) -> Self {
        Self::NotFound { what, id: id.to_string() }
    }

    pub(crate) fn application_not_found(app_id: &AppId) -> Self {
        Self::not_found("Application", app_id)
    }

    pub(crate) fn device_not_found(path: DevicePath<'_>) -> Self {
        Self::not_found("Device", path)
    }

    pub(crate) fn device_not_found_by_eui(app_id: &AppId, dev_eui: DevEui) -> Self {
        Self::not_found("Device", format_args!("with DevEUI {dev_eui} of application {app_id}"))
    }

    /// A device that cannot be registered under any of these ids.
    pub(crate) fn not_registrable(app_id: &AppId, dev_eui: DevEui, ids: &[DevId]) -> Self {
        let ids = ids.iter().map(DevId::as_str).collect::<Vec<_>>().join("` and `");
        let rule = format!(
            "{dev_eui} cannot be registered in application {app_id}: `{ids}` are other devices there, or another \
             application has a device with its EUIs"
        );
        Self::Invalid { what: "Device", reason: rule }
    }

    pub(crate) fn device_conflict(path: DevicePath<'_>) -> Self {
        Self::Conflict(format!("device {path}"))
    }

    pub(crate) fn already_exists(what: &'static str, id: impl fmt::Display) -> Self {
        Self::AlreadyExists { what, id: id.to_string() }
    }
}
