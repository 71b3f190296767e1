#![doc = include_str!("../README.md")]

mod chart;
mod comparison;
mod console;
mod device;
mod drafts;
mod error;
mod history;
mod live;
mod registrations;
mod services;
mod session;
mod settings;
mod site;
mod status;
mod trial;
mod webhook;

pub use console::{Console, Environment, Place};
pub use error::{Error, Result};
pub use settings::Settings;
pub use status::{
    ApplicationFunctions, ApplicationLoad, AuditTail, Check, Count, FunctionCounts, FunctionFailure, FunctionRanking,
    FunctionSums, NetworkStatus, OwnerUse, Queue, ServerStatus, ServiceLoad, StatusSource,
};
