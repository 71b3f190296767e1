//! Codecs without a network: functions in files, the codec service, and replays of what others have stored.

mod codecs;
mod functions;
mod replay;
