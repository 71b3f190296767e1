//! The state of the process that the console runs in, as its operators see it.
//!
//! `airlock serve` fills it in, so that the console needs to know nothing of the other services.

mod network;
mod trial;

use futures::future::BoxFuture;
use types::{AppId, Timestamp, UserId};

pub use self::network::{
    ConnectionStatus, DroppedEventStatus, EventStatus, NetworkStatus, NetworksStatus, RouteStatus, ShadowCodecStatus,
    ShadowConnection, ShadowStatus,
};
pub use self::trial::{CheckResult, NetworkTrial, NewNetwork, TrialCheck, TriedUplink};

/// Knows the state of the services in this process, and can try what is not in its settings yet.
pub trait StatusSource: Send + Sync {
    /// Returns the state at this moment. Of the owners, it has those that use most, or only the one that is named.
    fn status<'a>(&'a self, owner: &'a str) -> BoxFuture<'a, ServerStatus>;

    /// Returns the use of each budget by the owner that is named, such as `user alice`; or the reason why it is not known.
    fn usage<'a>(&'a self, owner: &'a str) -> BoxFuture<'a, Result<Vec<OwnerUse>, String>>;

    /// Returns lines of the audit log that have this text, in letters of either case; those before a place that an earlier
    /// answer had, or the newest if that is empty.
    fn audit<'a>(&'a self, search: &'a str, before: &'a str) -> BoxFuture<'a, AuditTail>;

    /// Returns the state of each network at this moment.
    fn networks(&self) -> BoxFuture<'_, NetworksStatus>;

    /// Checks what was entered, connects to the network for less than a minute, and waits for an uplink. Ends when the
    /// future is dropped, and when the user tries another one. Keeps nothing but a line of the audit log: who has tried
    /// which addresses.
    fn try_network<'a>(
        &'a self,
        user_id: &'a UserId,
        app_id: &'a AppId,
        network: NewNetwork,
    ) -> BoxFuture<'a, NetworkTrial>;

    /// Returns the checks of `/readyz` alone, which anybody may know.
    fn checks(&self) -> BoxFuture<'_, Vec<Check>>;
}

/// The state of a process at one moment. Counts are those since its start.
#[derive(Clone, Debug)]
pub struct ServerStatus {
    /// The checks of `/readyz`.
    pub checks: Vec<Check>,
    /// The requests of each service.
    pub services: Vec<ServiceLoad>,
    /// The use of budgets, the nearest to a share first; or the reason why that is not known.
    pub owners: Result<Vec<OwnerUse>, String>,
    /// Messages that wait.
    pub queues: Vec<Queue>,
    /// The applications of MQTT clients, those with most waiting messages first.
    pub applications: Vec<ApplicationLoad>,
    /// The state of history.
    pub history: HistoryState,
    /// The payload functions of all applications together.
    pub functions: FunctionCounts,
    /// The applications that stand out by their payload functions.
    pub ranking: FunctionRanking,
    /// The end of the audit log.
    pub audit: AuditTail,
}

/// The result of a check.
#[derive(Clone, Debug)]
pub struct Check {
    /// The name that `/readyz` has for it.
    pub name: String,
    /// The reason why it fails, if it does.
    pub failure: Option<String>,
}

/// The requests of a service.
#[derive(Clone, Debug)]
pub struct ServiceLoad {
    /// The service.
    pub name: String,
    /// Number of requests that are being handled.
    pub running: u64,
    /// Number of requests that wait for their turn.
    pub waiting: u64,
    /// Number of requests that were refused before they were handled.
    pub refused: u64,
    /// Number of requests with HTTP status 5xx, of which some were refused.
    pub failed: u64,
}

/// An owner's use of a budget.
#[derive(Clone, Debug)]
pub struct OwnerUse {
    /// The owner, with its kind, such as `user alice`.
    pub owner: String,
    /// The name of the budget.
    pub budget: String,
    /// Amount that the owner uses.
    pub used: u64,
    /// Amount that one owner may use at the moment.
    pub share: u64,
    /// The part of its share that the owner uses.
    pub percent: u64,
    /// Amount that all owners use together.
    pub used_by_all: u64,
    /// Maximum of all owners together.
    pub total: u64,
}

/// Messages that wait for the same.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    /// Whoever or whatever they wait for.
    pub name: String,
    /// Number of messages that wait.
    pub waiting: u64,
    /// Bytes that they take, if that is known.
    pub bytes: Option<u64>,
    /// Number of messages that were dropped or given up, if they can be.
    pub lost: Option<u64>,
    /// False if the receiver is not connected; none if it needs no connection.
    pub is_connected: Option<bool>,
}

impl Queue {
    /// The state of the connection in words; empty if there is none.
    pub(crate) fn connection(&self) -> &'static str {
        match self.is_connected {
            Some(true) => "connected",
            Some(false) => "not connected",
            None => "",
        }
    }
}

/// The MQTT clients of an application.
#[derive(Clone, Debug)]
pub struct ApplicationLoad {
    /// The id of the application, or a text for several.
    pub name: String,
    /// Number of connected clients.
    pub clients: u64,
    /// Number of messages that wait for clients.
    pub waiting: u64,
    /// Number of messages that were written to clients.
    pub delivered: u64,
    /// Number of messages that clients did not get.
    pub lost: u64,
}

/// A number of things.
#[derive(Clone, Debug)]
pub struct Count {
    /// The things.
    pub what: String,
    /// Their number.
    pub count: u64,
}

/// The state of history: if it keeps records, how many it did not keep, and what has changed on the disk.
#[derive(Clone, Debug, Default)]
pub struct HistoryState {
    /// False since the disk refused the last ones or was slow; none if history is off, or elsewhere.
    pub is_kept: Option<bool>,
    /// Records that were not kept, by reason.
    pub lost: Vec<Count>,
    /// Files that have changed and are kept aside, as they may have more records.
    pub damaged_files: u64,
}

impl HistoryState {
    /// The state in words; empty if there is none.
    pub(crate) fn words(&self) -> &'static str {
        match self.is_kept {
            Some(true) => "kept",
            Some(false) => "not kept",
            None => "",
        }
    }
}

/// Results and cost of payload functions.
#[derive(Clone, Debug, Default)]
pub struct FunctionCounts {
    /// Uplinks by outcome, such as `decoded`.
    pub outcomes: Vec<Count>,
    /// Mean fuel of an uplink.
    pub mean_fuel: Option<u64>,
    /// Mean time of an uplink in its sandbox, in microseconds.
    pub mean_time_us: Option<u64>,
}

/// The applications whose payload functions fail most or take longest.
#[derive(Clone, Debug, Default)]
pub struct FunctionRanking {
    /// The beginning of the time of recent uplinks.
    pub since: Timestamp,
    /// Number of recent uplinks that each of the applications has at least.
    pub uplinks_min: u64,
    /// Number of recent uplinks of applications that are not compared, because there are too many.
    pub uplinks_left_out: u64,
    /// Those with failures, the greatest share of recent uplinks first.
    pub failing: Vec<ApplicationFunctions>,
    /// Those whose functions take time, the greatest mean of recent uplinks first.
    pub slowest: Vec<ApplicationFunctions>,
}

/// Results and cost of one application's payload functions.
#[derive(Clone, Debug, Default)]
pub struct ApplicationFunctions {
    /// The id of the application.
    pub app_id: String,
    /// Of recent uplinks.
    pub recent: FunctionSums,
    /// Of all uplinks.
    pub total: FunctionSums,
    /// The last failure, recent or not.
    pub last_failure: Option<FunctionFailure>,
}

/// Failures and costs of uplinks.
#[derive(Clone, Copy, Debug, Default)]
pub struct FunctionSums {
    /// Number of uplinks.
    pub uplinks: u64,
    /// Number of uplinks that could not be decoded.
    pub failed: u64,
    /// Number of uplinks for which the validator returned false.
    pub invalid: u64,
    /// Mean fuel of an uplink.
    pub mean_fuel: u64,
    /// The most fuel of an uplink.
    pub fuel_max: u64,
    /// Mean time of an uplink in its sandbox, in microseconds.
    pub mean_time_us: u64,
    /// The longest time of an uplink, in microseconds.
    pub time_us_max: u64,
}

/// A failure of payload functions, without its text, which may hold personal data.
#[derive(Clone, Copy, Debug)]
pub struct FunctionFailure {
    /// When it happened.
    pub time: Timestamp,
    /// Its kind, such as `thrown`.
    pub kind: &'static str,
}

/// A part of the audit log.
#[derive(Clone, Debug)]
pub enum AuditTail {
    /// Events are only in the log of the process.
    NoFile,
    /// The file cannot be read; the reason names it.
    Unreadable(String),
    /// Lines of the file, and of those that were rotated before it.
    Lines {
        /// The path of the file.
        path: String,
        /// The lines, the newest first.
        lines: Vec<String>,
        /// The place from which a search can go on; none if all lines were looked at.
        next: Option<String>,
    },
}
