//! Notices devices that have sent nothing for a time that is set, and publishes an event for each silence.
//!
//! Each device has an alarm in the store (`registry/alarm.rs`). An uplink is only noted in memory (`uplink/last_heard.rs`).
//! Once an alarm is due, it is set again if the device was heard in the meantime, as this process, the record of the
//! device or history says; otherwise the device is silent. A device that gets another time has a place in the order of
//! time, too, at which its alarm is set by that. Applications in which nothing is due and nothing was noted are
//! not looked at (`schedule.rs`).

mod alarm_change;
mod clock;
mod due;
mod environment;
mod history;
mod next_step;
mod recall;
mod schedule;
mod turn;
mod walk;
mod watch;

pub use self::{environment::Environment, watch::SilenceWatch};
