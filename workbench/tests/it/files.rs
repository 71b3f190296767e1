//! Codecs in directories: what is found there, and what is written.

mod bounds;
mod discovery;
mod layouts;
mod silence;
mod template;
mod update;
mod watch;
