//! The codec service over real connections and a real directory.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, unreachable_pub)]

extern crate airlock_codecs as codecs;

mod directory;
mod emqx;
mod harness;
mod key;
mod messages;
