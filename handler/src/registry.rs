//! The applications and devices of the handler: their records and alarms, the seal of their secrets, and their
//! announcement.

pub(crate) mod alarm;
pub mod announcement;
pub mod application;
pub mod device;
pub mod sealer;
