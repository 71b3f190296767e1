//! The applications and devices of the handler: their records, the seal of their secrets, and their announcement.

pub mod announcement;
pub mod application;
pub mod device;
pub mod sealer;
