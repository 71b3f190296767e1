//! Uplinks in, fields out; downlinks back.
