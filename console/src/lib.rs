#![doc = include_str!("../README.md")]

mod chart;
mod console;
mod error;
mod form;
mod functions;
mod map;
mod messages;
mod services;
mod session;
mod settings;
mod site;
mod status;

pub use console::{Console, ConsoleAddress, Environment};
pub use error::{Error, Result};
pub use settings::{MapTiles, Settings, TileUrl, TileUrlError};
pub use status::{
    ApplicationFunctions, ApplicationLoad, AuditTail, Check, CheckResult, ConnectionStatus, Count, DroppedEventStatus,
    EventStatus, FunctionCounts, FunctionFailure, FunctionRanking, FunctionSums, HistoryState, NetworkStatus,
    NetworkTrial, NetworksStatus, NewNetwork, OwnerUse, Queue, RouteStatus, ServerStatus, ServiceLoad,
    ShadowCodecStatus, ShadowConnection, ShadowStatus, StatusSource, TrialCheck, TriedUplink,
};
